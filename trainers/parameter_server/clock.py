"""Clock of a worker on which its steps take time: the wall's, or a virtual one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Clock of a worker, on which its steps take time; `name` is for the record."""

    name: str

    def now(self) -> float:
        """In seconds."""

    def step(self, number: int, delay: float) -> None:
        """Before push `number`, counted over the trial's life: lets `delay` seconds pass."""

    def level(self) -> None:
        """All workers have met: those whose time is virtual are at one time from here on."""


class WallClock:
    """Real time."""

    name = "wall"

    def now(self) -> float:
        """See `Clock.now`."""
        return time.monotonic()

    def step(self, number: int, delay: float) -> None:
        """See `Clock.step`."""
        if delay:
            time.sleep(delay)

    def level(self) -> None:
        """See `Clock.level`."""
