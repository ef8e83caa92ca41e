"""What a job does with Ctrl-C and SIGTERM, decided without Ray: real signals to this process."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas
import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import Callback, ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.jobs.stop_signals import AT_ONCE, Interrupts
from hpo.record.store import Store
from hpo.search.observer import INTERRUPTED, TERMINATED
from hpo.search.trial import UNTUNED
from tests.support.refusals import mentions
from trainers import XGBoostTrainer
from trainers.gangs.in_process import InHand
from trainers.process.uninterrupted import whole


@pytest.fixture(autouse=True)
def pythons_own_handlers() -> Iterator[None]:
    """As in a process that nobody has changed; and they are put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before[signal.SIGTERM]
    signal.signal(signal.SIGINT, before[signal.SIGINT])


def press(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


# ---- the signals


def test_the_first_asks_the_job_to_stop_and_the_second_raises_once() -> None:
    said: list[str] = []
    asked: list[str] = []
    with Interrupts(said.append) as interrupts:
        interrupts.stops(asked.append)
        with pytest.raises(KeyboardInterrupt), interrupts.under_way():
            press(2)
        press(3)
    assert (asked, said) == ([INTERRUPTED], [])


def test_what_comes_before_the_job_is_there_is_kept_for_it() -> None:
    said: list[str] = []
    asked: list[str] = []
    with Interrupts(said.append) as interrupts:
        press()
        (line,) = said
        mentions(line, "Ctrl-C")
        with interrupts.under_way():
            interrupts.stops(asked.append)
    assert asked == [INTERRUPTED]


def test_two_that_come_before_the_search_raise_as_it_begins() -> None:
    begun: list[str] = []
    with Interrupts(lambda text: None) as interrupts:
        press(2)
        with pytest.raises(KeyboardInterrupt), interrupts.under_way():
            begun.append("searched")
        press(2)
    assert not begun


def test_the_second_waits_for_the_end_of_what_is_not_to_be_cut() -> None:
    done: list[str] = []

    def search() -> None:
        with whole() as interrupted:
            press()
            assert not interrupted()
            press()
            assert interrupted()
            done.append("Ray has started")
        done.append("and nothing more")

    with Interrupts(lambda text: None) as interrupts, pytest.raises(KeyboardInterrupt), interrupts.under_way():
        search()
    assert done == ["Ray has started"]


def test_nothing_is_heard_when_the_search_is_over() -> None:
    asked: list[str] = []
    with Interrupts(lambda text: None) as interrupts:
        with interrupts.under_way():
            interrupts.stops(asked.append)
            interrupts.closing()
            press(3)
        press(3)
    assert not asked


def test_whoever_asks_often_enough_is_heard_at_any_moment() -> None:
    """A database that does not answer, or a callback of the user's own, may hold up what no signal cuts else."""
    with Interrupts(lambda text: None) as interrupts:
        interrupts.closing()
        press(AT_ONCE - 1)
        with pytest.raises(KeyboardInterrupt):
            press()


def test_sigterm_is_another_reason() -> None:
    asked: list[str] = []
    with Interrupts(lambda text: None) as interrupts, interrupts.under_way():
        interrupts.stops(asked.append)
        signal.raise_signal(signal.SIGTERM)
    assert asked == [TERMINATED]


def test_an_answer_that_comes_in_the_middle_of_another_line_is_left_to_the_jobs_own_loop() -> None:
    def say(text: str) -> None:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stdout>'>")

    asked: list[str] = []
    with Interrupts(say) as interrupts:
        press()
        interrupts.stops(asked.append)
    assert asked == [INTERRUPTED]


def test_in_another_thread_it_changes_nothing() -> None:
    found: list[object] = []

    def run() -> None:
        with Interrupts(lambda text: None) as interrupts, interrupts.under_way():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert found == [signal.default_int_handler]


# ---- a whole job, in this process

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


def run(printed: io.StringIO, *callbacks: Callback, trials: int = 6) -> tuple[bool, str, str, bool]:
    """Runs a job; returns whether `fit` raised KeyboardInterrupt, the record's status and reason, and if all ended."""
    random = np.random.default_rng(0)
    rows = pandas.DataFrame(random.normal(size=(200, 3)), columns=["a", "b", "c"])
    rows.insert(0, "y", (rows["a"] > 0).astype(int))
    tuner = HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc"},
        ),
        "validation:auc",
        {"eta": ContinuousParameter(0.1, 1)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1, suggestions="random")),
        max_jobs=trials,
        random_seed=1,
        callbacks=callbacks,
        console=Console(file=printed, width=120),
    )
    raised = False
    try:
        tuner.fit({"train": rows[:150], "validation": rows[150:]}, job_name="pressed")
    except KeyboardInterrupt:
        raised = True
    with Store() as store:
        job, found = store.job("pressed"), store.trials("pressed")
    ended = [trial.ended_at is not None for trial in found if trial.trial_id != UNTUNED]
    return raised, job.status, job.reason, all(ended)


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
    mentions(printed.getvalue().rstrip().splitlines()[-1], LAST_WORDS, "hpo trials pressed")
