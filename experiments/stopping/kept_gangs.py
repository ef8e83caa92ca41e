"""Gangs that stay up for the next search."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trainers.gangs import Assignment, Event, GangEnded, GangLost, Gangs, GangUp


class KeptGangs:
    """The gangs of many searches, one after another: closing a search leaves them up for the next."""

    def __init__(self, gangs: Gangs) -> None:
        self._gangs = gangs
        self._up: dict[str, GangUp] = {}
        self._waiting: list[Event] = []
        self.starting = 0
        self.held_since = gangs.held_since
        self.want = gangs.want
        self.halt = gangs.halt
        self.recycle = gangs.recycle

    def give_back(self) -> Collection[str]:
        """None: what one search has no use for is the next one's."""
        return ()

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Hands an assignment to a gang."""
        self._gangs.assign(gang, assignment)

    def events(self, timeout: float) -> Sequence[Event]:
        """The gangs that are up already, then what happens."""
        waiting, self._waiting = self._waiting, []
        events = list(self._gangs.events(0 if waiting else timeout))
        for event in events:
            if isinstance(event, GangUp):
                self._up[event.gang] = event
            elif isinstance(event, GangLost | GangEnded):
                self._up.pop(event.gang, None)
        return [*waiting, *events]

    def close(self, *, now: bool = False) -> None:
        """Keeps the gangs; the next search is told that they are up."""
        self._waiting = list(self._up.values())
