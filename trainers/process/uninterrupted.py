"""Blocks that Ctrl-C does not cut in two: `KeyboardInterrupt` comes after them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class _State:
    """Where the main thread is, which alone runs signal handlers."""

    depth: int = 0
    """Blocks that it is in."""
    pressed: bool = False
    """Whether an interrupt waits for their end."""


_main = _State()


def interrupt() -> None:
    """Raises `KeyboardInterrupt`, or leaves that to the end of the block that is not to be cut; for signal handlers."""
    if _main.depth:
        _main.pressed = True
    else:
        _main.pressed = False  # Where one comes just as the block ends, they are one.
        raise KeyboardInterrupt


@contextmanager
def whole() -> Iterator[Callable[[], bool]]:
    """Runs a block to its end, and raises the `KeyboardInterrupt` that was asked for meanwhile behind it.

    For what leaves processes or threads behind where it is cut short: to start Ray, to end it, to close gangs. Each
    has deadlines of its own. A handler of SIGINT that is not Python's has to call `interrupt`.

    Yields:
        Whether an interrupt waits for the end of the block; it may hurry then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)
    # In this order, and back in the other: at no point an interrupt is raised while `depth` counts.
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_signal)
    _main.depth += 1
    try:
        yield lambda: _main.pressed
    finally:
        _main.depth -= 1
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)
        if not _main.depth and _main.pressed:
            _main.pressed = False
            raise KeyboardInterrupt


def _on_signal(number: int, frame: FrameType | None) -> None:
    interrupt()
