"""Simulated gangs with a clock of their own, for studies and tests of the controller."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainers.errors import DivergedError
from trainers.gangs import Assignment, Event, GangLost, GangUp, Release, Report, Segment, Served, next_change

Curve = Callable[[Assignment, int], float]
"""The objective of an assignment's trial after so many units."""


class SimulatedGangs:
    """Serves assignments on a simulated clock: events in order of (time, counter), as the real gangs would send them.

    Args:
        curve: gives the objective; an exception it raises fails the trial, as a trainer's would, or says that it
            diverged.
        metric: key of the objective.
        room: how many workers there is room for; None: any number.
        start_seconds: from a gang's start to its first assignment, and again after it was lost.
        unit_seconds: of an assignment's unit.
        details: of every segment.
        losses: numbers of the assignments, counted from 0 over the whole run, in which the gang is lost.
    """

    def __init__(
        self,
        curve: Curve,
        *,
        metric: str,
        room: int | None = None,
        start_seconds: float = 0.0,
        unit_seconds: Callable[[Assignment], float] = lambda assignment: 1.0,
        details: Mapping[str, Any] | None = None,
        losses: frozenset[int] = frozenset(),
    ) -> None:
        self.now = 0.0
        self.served: list[Assignment] = []
        self.busy_seconds = 0.0
        self.gangs = 0
        self.sizes: dict[str, int] = {}
        """Workers of each gang that is there."""
        self.released: list[tuple[str, list[str]]] = []
        """Each gang that was given back for another size, with those that were idle, the least recently used first."""
        self._idle: dict[str, None] = {}
        self._curve = curve
        self._metric = metric
        self._room = room
        self._start_seconds = start_seconds
        self._unit_seconds = unit_seconds
        self._details = dict(details or {})
        self._losses = losses
        self._counter = itertools.count()
        self._events: list[tuple[float, int, Event]] = []
        self._started: dict[str, float] = {}
        self._serving: dict[str, tuple[Assignment, float]] = {}
        """What each busy gang serves, and since when."""

    def clock(self) -> float:
        """Seconds since the simulation began."""
        return self.now

    @property
    def starting(self) -> int:
        """Gangs whose start is still among the events to come."""
        return sum(isinstance(event, GangUp) for _, _, event in self._events)

    def held_since(self, gang: str) -> float:
        """When the gang was started."""
        return self._started[gang]

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        """Starts what is wanted and there is room for, and gives idle gangs back for those of other sizes."""
        gone = []
        while (
            change := next_change(sizes, self.sizes, list(self._idle), worth_another=True, fits=self._fits)
        ) is not None:
            if isinstance(change, Release):
                self.released.append((change.gang, list(self._idle)))
                del self.sizes[change.gang], self._idle[change.gang]
                gone.append(change.gang)
                continue
            gang = f"gang{self.gangs}"
            self.gangs += 1
            self.sizes[gang] = change.workers
            self._started[gang] = self.now
            self._push(self._start_seconds, GangUp(gang=gang, workers=change.workers, incarnation=""))
        return gone

    def give_back(self) -> Collection[str]:
        """None: a simulated cluster has one job."""
        return ()

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Serves an assignment; its event comes when the simulated time has passed."""
        self._idle.pop(gang, None)
        number = len(self.served)
        self.served.append(assignment)
        self._serving[gang] = assignment, self.now
        seconds = self._unit_seconds(assignment) * (assignment.stop - assignment.start)
        self.busy_seconds += seconds
        if number in self._losses:
            self._push(seconds / 2, GangLost(gang=gang, reason="simulated loss"))
            self._push(seconds / 2 + self._start_seconds, GangUp(gang=gang, workers=self.sizes[gang], incarnation=""))
            return
        self._push(seconds, self._serve(gang, assignment, seconds))

    def halt(self, gang: str) -> None:
        """See `Gangs.halt`; every report has a checkpoint. A gang that is to be lost before its next report is lost."""
        if gang not in self._serving:
            return
        assignment, since = self._serving[gang]
        seconds = self._unit_seconds(assignment)
        units = max(1, math.ceil((self.now - since) / seconds)) if seconds else assignment.stop - assignment.start
        end = since + units * seconds
        left = [entry for entry in self._events if not isinstance(entry[2], Served) or entry[2].gang != gang]
        if assignment.start + units >= assignment.stop or len(left) == len(self._events):
            return
        self._events = left
        heapq.heapify(self._events)
        self.busy_seconds -= (assignment.stop - assignment.start - units) * seconds
        step = assignment.start + units
        short = replace(assignment, stop=step, save_to=assignment.saved_at(step))
        self._serving[gang] = short, since
        self._push(end - self.now, self._serve(gang, short, units * seconds))

    def events(self, timeout: float) -> Sequence[Event]:
        """The next event; moves the clock to it."""
        if not self._events:
            raise RuntimeError(f"the controller waits for an event at {self.now:g} s and none will come")
        self.now, _, event = heapq.heappop(self._events)
        if isinstance(event, GangUp | Served):
            self._idle[event.gang] = None
            self._serving.pop(event.gang, None)
        return [event]

    def recycle(self, gang: str, reason: str) -> None:
        """Does nothing: simulated gangs answer."""

    def close(self, *, now: bool = False) -> None:
        """Holds nothing to release."""

    def _fits(self, workers: int, returned: Sequence[str]) -> bool:
        left = sum(size for gang, size in self.sizes.items() if gang not in returned)
        return self._room is None or left + workers <= self._room

    def _push(self, delay: float, event: Event) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._counter), event))

    def _serve(self, gang: str, assignment: Assignment, seconds: float) -> Served:
        reports: list[Report] = []
        try:
            for step in range(assignment.start + 1, assignment.stop + 1):
                reports.append(Report(step=step, metrics={self._metric: self._curve(assignment, step)}))
        except Exception as error:
            return Served(
                gang=gang,
                trial_id=assignment.trial_id,
                error=str(error),
                diverged=isinstance(error, DivergedError),
                reports=tuple(reports),
            )
        segment = Segment(
            reports=tuple(reports),
            checkpoint=assignment.save_to,
            training_seconds=seconds,
            checkpointing_seconds=0.0,
            first_step_at=self.now,
            details=self._details,
        )
        return Served(gang=gang, trial_id=assignment.trial_id, segment=segment)
