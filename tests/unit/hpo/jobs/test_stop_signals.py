"""What a job does with Ctrl-C and SIGTERM, decided without Ray: real signals to this process."""

from __future__ import annotations

import signal
import threading

import pytest

from hpo.jobs import stop_signals
from hpo.jobs.stop_signals import AT_ONCE, Interrupts
from hpo.search.observer import INTERRUPTED, TERMINATED
from tests.support.hpo.jobs.stop_signals import (
    press,
    pythons_own_handlers,  # noqa: F401  # Of every test.
)
from tests.support.refusals import mentions
from trainers.process.uninterrupted import whole


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
    with Interrupts(said.append, "hpo resume job") as interrupts:
        press()
        with interrupts.under_way():
            interrupts.stops(asked.append)
    assert asked == [INTERRUPTED]
    (line,) = said
    mentions(line, "Ctrl-C", "hpo resume job")


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


def test_the_handler_itself_prints_and_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may run in the middle of a line, or of an import; the answer is printed elsewhere, or not at all."""
    threads: list[threading.Thread] = []

    def say(text: str) -> None:
        threads.append(threading.current_thread())
        raise BrokenPipeError

    def refuse(*_: object) -> None:
        raise AssertionError("an import in a signal handler")

    asked: list[str] = []
    with Interrupts(say) as interrupts:
        with monkeypatch.context() as patch:
            patch.setattr("builtins.print", refuse)
            patch.setattr("builtins.__import__", refuse)  # The last: to patch by a name imports, too.
            press()
        interrupts.stops(asked.append)
    assert asked == [INTERRUPTED]
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


def test_an_output_that_nobody_reads_holds_no_stop_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_signals, "WORDS_SECONDS", 0.05)
    read = threading.Event()
    asked: list[str] = []
    with Interrupts(lambda text: (read.wait(60), None)[1]) as interrupts:
        press()
        interrupts.stops(asked.append)
    assert asked == [INTERRUPTED]
    read.set()


def test_in_another_thread_it_changes_nothing() -> None:
    found: list[object] = []

    def run() -> None:
        with Interrupts(lambda text: None) as interrupts, interrupts.under_way():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert found == [signal.default_int_handler]
