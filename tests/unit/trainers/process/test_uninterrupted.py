"""Blocks that Ctrl-C does not cut in two, with real signals to this process."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from trainers.process.uninterrupted import interrupt, whole


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    """As in a process that nobody has changed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "it is put back"
    signal.signal(signal.SIGINT, before)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_raises_behind_the_block_once_and_then_where_it_comes() -> None:
    done: list[str] = []

    def block() -> None:
        with whole() as interrupted:
            assert not interrupted()
            press()
            press()
            assert interrupted()
            done.append("to its end")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["to its end"]
    with whole() as interrupted:
        assert not interrupted(), "it was raised, and is over"
    with pytest.raises(KeyboardInterrupt):
        press()


def test_a_block_within_another_leaves_it_to_the_outer_one() -> None:
    done: list[str] = []

    def block() -> None:
        with whole():
            with whole() as interrupted:
                press()
                assert interrupted()
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["outer"]


def test_the_blocks_own_error_does_not_hide_ctrl_c() -> None:
    def block() -> None:
        with whole():
            press()
            raise ValueError("its own")

    with pytest.raises(KeyboardInterrupt) as caught:
        block()
    assert isinstance(caught.value.__context__, ValueError)


def test_an_error_alone_comes_out_as_it_is() -> None:
    with pytest.raises(ValueError, match="its own"), whole():
        raise ValueError("its own")
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_a_handler_of_somebody_elses_stays_and_asks_for_the_interrupt_itself() -> None:
    heard: list[int] = []

    def handler(number: int, frame: object) -> None:
        heard.append(number)
        if len(heard) == 2:
            interrupt()

    signal.signal(signal.SIGINT, handler)
    try:

        def block() -> None:
            with whole() as interrupted:
                press()
                assert not interrupted()
                press()
                assert interrupted()

        with pytest.raises(KeyboardInterrupt):
            block()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_have_no_signals() -> None:
    seen: list[bool] = []

    def run() -> None:
        with whole() as interrupted:
            seen.append(interrupted())

    thread = threading.Thread(target=run)

    def block() -> None:
        with whole():
            press()
            thread.start()
            thread.join(30)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert seen == [False]


def play(at: int) -> tuple[list[str], bool, bool]:
    """Presses at one of the points between which `whole` itself can be interrupted.

    Returns:
        What of the block was done, whether it raised, and whether there is such a point.
    """
    done: list[str] = []
    passed, raised = 0, False

    def into(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is not whole.__wrapped__.__code__:  # type: ignore[attr-defined]
            return None
        frame.f_trace_opcodes = True
        return within

    def within(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal passed
        if event == "opcode":
            passed += 1
            if passed == at:
                press()
        return within

    before = sys.gettrace()
    sys.settrace(into)
    try:
        with whole():
            done.append("begun")
            done.append("ended")
    except KeyboardInterrupt:
        raised = True
    finally:
        sys.settrace(before)
    return done, raised, passed >= at


def test_at_whatever_point_ctrl_c_comes_it_is_raised_and_the_block_is_not_cut() -> None:
    points, cut_before, behind = 0, 0, 0
    while True:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        done, raised, there = play(points + 1)
        if not there:
            break
        points += 1
        assert raised
        assert done in ([], ["begun", "ended"])
        cut_before, behind = cut_before + (not done), behind + bool(done)
        with pytest.raises(KeyboardInterrupt):  # Nothing is held back any more.
            press()
    assert cut_before > 10
    assert behind > 10
