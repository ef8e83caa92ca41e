"""What a job does with Ctrl-C and SIGTERM, decided without Ray: real signals to this process."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from hpo import Callback
from hpo.search.observer import INTERRUPTED
from tests.support.hpo.jobs.stop_signals import (
    press,
    pythons_own_handlers,  # noqa: F401  # Of every test.
    run,
)
from tests.support.refusals import mentions
from trainers.gangs.in_process import InHand

LAST_WORDS = "hpo describe pressed"


class Printed(io.StringIO):
    """Where a job prints; does something, once, when a text comes."""

    def __init__(self, text: str, act: Callable[[], None]) -> None:
        super().__init__()
        self._text, self._act = text, act
        self.acted = False

    def write(self, text: str) -> int:
        written = super().write(text)
        if not self.acted and self._text in text:
            self.acted = True
            self._act()
        return written


class Presses(Callback):
    """Presses when the job calls one of its methods for the first time."""

    def __init__(self, method: str, times: int) -> None:
        self.pressed = 0

        def act(*_: Any) -> None:
            if not self.pressed:
                self.pressed = times
                press(times)

        setattr(self, method, act)


STOPPED = (True, "Stopped", INTERRUPTED)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_job_that_is_announced_is_stopped_and_says_its_last_words(times: int) -> None:
    printed = Printed("pressed", lambda: press(times))
    assert run(printed)[:3] == STOPPED
    assert printed.acted
    assert LAST_WORDS in printed.getvalue()
    mentions(printed.getvalue().replace(INTERRUPTED, ""), "Ctrl-C")  # Beside the reason: what stops it at once.


@pytest.mark.parametrize("method", ["on_job_start", "on_trial_report", "on_trial_end"])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_job_that_is_under_way_is_stopped_and_says_its_last_words(method: str, times: int) -> None:
    presses, printed = Presses(method, times), io.StringIO()
    raised, status, reason, all_ended = run(printed, presses, trials=60)
    assert presses.pressed
    assert (raised, status, reason) == STOPPED
    assert LAST_WORDS in printed.getvalue()
    assert all_ended or times > 1


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_job_that_is_being_written_down_ends_as_it_would(times: int) -> None:
    presses, printed = Presses("on_job_end", times), io.StringIO()
    assert run(printed, presses) == (False, "Completed", "", True)
    assert presses.pressed
    assert LAST_WORDS in printed.getvalue()


def test_a_search_that_has_ended_is_not_stopped_while_its_gangs_close(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = InHand.close
    pressed: list[bool] = []

    def close(gangs: InHand, *, now: bool = False) -> None:
        if not pressed:
            pressed.append(True)
            press()
        rest(gangs, now=now)

    monkeypatch.setattr(InHand, "close", close)
    assert run(io.StringIO()) == (False, "Completed", "", True)
    assert pressed


@pytest.mark.parametrize("stopped", [False, True], ids=["by itself", "by Ctrl-C"])
def test_the_last_words_are_said_to_their_end(stopped: bool) -> None:
    printed = Printed("eta=", lambda: press(3))  # Of the best trial, in the summary.
    callbacks = [Presses("on_trial_end", 1)] if stopped else []
    raised, status, _, _ = run(printed, *callbacks, trials=60 if stopped else 6)
    assert printed.acted
    assert (raised, status) == ((True, "Stopped") if stopped else (False, "Completed"))
    lines = printed.getvalue().rstrip().splitlines()
    mentions(lines[-1], LAST_WORDS)
    resumed = [line for line in lines if "hpo resume pressed" in line]
    assert len(resumed) == (2 if stopped else 0), "as it is asked to stop, and in the first line of its summary"
    if stopped:
        mentions(resumed[0], "Ctrl-C")
        mentions(resumed[1], "pressed", "Stopped", INTERRUPTED)
