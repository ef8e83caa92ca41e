"""Departing gangs: waited for, and ended by force after their deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

from trainers.gangs.gang import END_SECONDS, Gang


class Departures:
    """The gangs of a job that were told to end and may still hold something.

    Args:
        notify: is told of gangs that do not end.
    """

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify
        self._until: dict[Gang, float] = {}
        """Until when each has time to end by itself."""

    def __iter__(self) -> Iterator[Gang]:
        return iter(self._until)

    def __len__(self) -> int:
        return len(self._until)

    def add(self, gang: Gang, seconds: float | None = None) -> None:
        """Tells a gang to end, and leaves it so many seconds to do so; None: as many as its program may take."""
        gang.goodbye()
        self._until[gang] = time.monotonic() + (gang.end_seconds if seconds is None else seconds)

    def see_off(self) -> bool:
        """Ends by force what is late; returns whether a gang is over since the last call."""
        over = False
        for gang, deadline in list(self._until.items()):
            if gang.ended:
                gang.release()
                del self._until[gang]
                over = True
            elif time.monotonic() > deadline + END_SECONDS:
                del self._until[gang]
                waited = gang.end_seconds + END_SECONDS
                self._notify(f"warning: waited {waited:.0f} s for {gang.name} to end and left it")
            elif time.monotonic() > deadline:
                gang.end_by_force()
        return over

    def force(self, gang: Gang) -> None:
        """Ends a gang by force, and waits for it to be over as long as any may take to end."""
        deadline = time.monotonic() + END_SECONDS
        while not gang.join(0.1) and time.monotonic() < deadline:
            gang.end_by_force()

    def end_all(
        self, gangs: Collection[Gang], up: Callable[[Gang], bool], now: Callable[[], bool], *, private: bool
    ) -> None:
        """Tells gangs to end and waits for it: those that are up have time, those still starting have none.

        Args:
            gangs: all whose runs may not be over yet, those that were told to end before among them.
            up: whether one is up, and may be serving.
            now: asked again and again: whether to wait no longer for what they serve.
            private: the cluster ends with the job, so that Train's controllers may be killed.
        """
        self._until.clear()
        waited = [gang for gang in gangs if not gang.ended]
        for gang in waited:
            gang.goodbye()
        longest = max((gang.end_seconds for gang in waited), default=0.0)
        deadline = time.monotonic() + longest
        while waited := [gang for gang in waited if not gang.join(0.02)]:
            for gang in waited:
                if not up(gang) or now() or time.monotonic() > deadline:
                    gang.kill() if private else gang.end_by_force()
            if time.monotonic() > deadline + END_SECONDS:
                names = ", ".join(gang.name for gang in waited)
                seconds = longest + END_SECONDS
                self._notify(f"warning: waited {seconds:.0f} s for gangs to end and left them: {names}")
                break
