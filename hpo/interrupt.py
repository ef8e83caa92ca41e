"""Ctrl-C while a job runs: once stops it gracefully, twice at once, and a third cannot spoil the cleaning up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

INTERRUPTED = "interrupted by Ctrl-C"


class Interrupts:
    """Takes Ctrl-C for the length of a block; where that is not in the main thread, it does nothing.

    The first asks the job to stop, or, while the job is not there yet, is kept for it. The second raises
    `KeyboardInterrupt`. Further ones are ignored until the block is left, and so is every one behind `closing`: a
    cleaning up that is cut short would leave processes behind.

    Args:
        say: prints a line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._stop: Callable[[str], None] | None = None
        self._count = 0
        self._closing = False
        self._before: Any = None
        self._main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    def stops(self, stop: Callable[[str], None]) -> None:
        """From now on there is a job, and this stops it gracefully; at once if that was asked for before."""
        self._stop = stop
        if self._count:
            stop(INTERRUPTED)

    def closing(self) -> None:
        """The job is over, and what it held is being released, which takes seconds."""
        self._closing = True

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._closing or self._count > 2:
            return
        if self._count == 2:
            raise KeyboardInterrupt
        if self._stop is None:
            self._say("stopping as soon as Ray has started; Ctrl-C again stops now")
        else:
            self._stop(INTERRUPTED)  # Whoever follows the job says so, in the job's own loop.
