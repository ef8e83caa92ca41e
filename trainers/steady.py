"""Unix time that never jumps: the wall clock at one moment, and the seconds since.

Deadlines, bills and silence are told by it, and it can be written down as a date. The wall clock cannot do that: it is
set by hand, by NTP, and in a virtual machine that was paused. Each process has a steady clock of its own, so what
another process says in unix time is only as right as both wall clocks were.

While the machine is suspended it stands still, as CLOCK_MONOTONIC does on Linux: nobody trains then, so a lid that was
closed for a night is neither billed nor taken for workers that fell silent; dates of that run are as much behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_ahead = time.time() - time.monotonic()
_measuring = 0


def now() -> float:
    """Seconds since the epoch."""
    return _ahead + time.monotonic()


@contextmanager
def measuring() -> Iterator[None]:
    """In this block the clock is not set; the first of those that are open at once sets it by the wall clock.

    So in a process that lives for weeks, a notebook's say, dates are right as of the start of what is measured.
    """
    global _ahead, _measuring
    with _lock:
        if not _measuring:
            _ahead = time.time() - time.monotonic()
        _measuring += 1
    try:
        yield
    finally:
        with _lock:
            _measuring -= 1
