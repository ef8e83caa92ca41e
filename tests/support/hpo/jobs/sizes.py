"""Searches whose gangs have several sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hpo.search.simulated_gangs import SimulatedGangs
from tests.support.simulated import simulate
from trainers.gangs.messages import Assignment, Event, GangLost, GangUp, Served


def sized(*sizes: int):  # type: ignore[no-untyped-def]
    """The gang of a configuration: one of these sizes, by its eta; the first for the static one."""
    return lambda hyperparameters: sizes[int(hyperparameters.get("eta", 0.0) * len(sizes))]


class Watched(SimulatedGangs):
    """Simulated gangs that look at what is asked of them, and keep an account of their own."""

    workers: Any
    room: int

    def __init__(self, *arguments: Any, room: int | None = None, **options: Any) -> None:
        super().__init__(*arguments, room=room, **options)
        self.limit = room
        self.used: dict[str, tuple[float, int]] = {}
        self.uses = 0
        self.busy: set[str] = set()
        self.most_at_once = 0
        self.held: dict[str, tuple[int, float]] = {}
        self.billed = 0.0

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        idle = {gang: when for gang, when in self.used.items() if gang not in self.busy}
        gone = list(super().want(sizes, seconds_left))
        assert self.limit is None or sum(self.sizes.values()) <= self.limit
        for gang in gone:
            assert idle.pop(gang) == min([*idle.values(), self.used[gang]]), "another was idle for longer"
            del self.used[gang]
            workers, since = self.held.pop(gang)
            self.billed += workers * (self.now - since)
        for gang, workers in self.sizes.items():
            self.held.setdefault(gang, (workers, self.now))
        return gone

    def assign(self, gang: str, assignment: Assignment) -> None:
        assert self.sizes[gang] == self.workers(assignment.hyperparameters)
        assert gang not in self.busy
        self.busy.add(gang)
        self.most_at_once = max(self.most_at_once, len(self.busy))
        super().assign(gang, assignment)

    def events(self, timeout: float) -> Sequence[Event]:
        events = super().events(timeout)
        for event in events:
            if isinstance(event, GangLost):
                self.busy.discard(event.gang)
                del self.used[event.gang]  # It serves nothing, and is not idle until it is back.
            elif isinstance(event, GangUp | Served):
                self.uses += 1
                self.used[event.gang] = (self.now, self.uses)
                self.busy.discard(event.gang)
        return events

    def close(self, *, now: bool = False) -> None:
        self.billed += sum(workers * (self.now - since) for workers, since in self.held.values())
        self.held.clear()


def watched(workers: Any, **options: Any) -> tuple[Any, Watched, Any]:
    kind = type("Sized", (Watched,), {"workers": staticmethod(workers)})
    return simulate(workers=workers, gangs=kind, **options)
