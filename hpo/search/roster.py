"""Roster of a search's gangs, and the work of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ray.tune.experiment import Trial

from hpo.record import LedgerRow
from hpo.search.trial import TrialRun
from trainers.gangs import Assignment, Report

_GOES_ON = 3
"""What it costs to take a gang from a trial that is to go on there."""


@dataclass(slots=True, kw_only=True)
class Work:
    """An assignment that a gang serves.

    Args:
        run: its trial.
        assignment: what was handed out.
        since: when, on the controller's clock.
        heard: when the gang was last heard of.
        reached: the last step that it reported of it.
        halted: it was asked to end at its next report, as a person stops the trial.
    """

    run: TrialRun
    assignment: Assignment
    since: float
    heard: float
    reached: int = 0
    halted: bool = False


class Roster:
    """Gangs by name, from when they are up until they are lost, over or given back.

    Args:
        clock: the controller's.
        before: what was billed before, of a job that is taken up.
    """

    def __init__(self, clock: Callable[[], float], before: Iterable[LedgerRow] = ()) -> None:
        self.busy: dict[str, Work] = {}
        self.free: list[str] = []
        """Those that are up and serve nothing, the longest first."""
        self.sizes: dict[str, int] = {}
        """Workers of each gang that is there, up or coming back."""
        self._places: dict[str, dict[str, dict[str, int]]] = {}
        """Workers of each gang by machine, and there by what they compute on."""
        self._stands: dict[str, TrialRun] = {}
        """The trial of each free gang that may go on there at once, where its program waits."""
        self._clock = clock
        self._served: defaultdict[str, float] = defaultdict(float)
        for row in before:
            self._served[row.trial_id] += row.worker_seconds / max(1, row.workers)
        self._waited: defaultdict[str, float] = defaultdict(float)
        self.waiting: dict[str, tuple[TrialRun, float]] = {}
        """Trials that lost their gangs and have no other yet, by id, and since when."""

    def seconds(self, run: TrialRun) -> tuple[float, float]:
        """For how long gangs have served a trial, and for how long it waited for one after losing another."""
        now, served, waited = self._clock(), self._served[run.id], self._waited[run.id]
        served += sum(now - work.since for work in self.busy.values() if work.run is run)
        return served, waited + (now - self.waiting[run.id][1] if run.id in self.waiting else 0.0)

    def up(self, gang: str, workers: int, hosts: Sequence[str] = (), devices: Sequence[str] = ()) -> None:
        """A gang came up, for the first time or again, with each rank's machine and what that computes on."""
        self.sizes[gang] = workers
        self.free.append(gang)
        placed = Counter(zip_longest(hosts, devices, fillvalue=""))
        self._places[gang] = {host: {} for host, _ in placed}
        for (host, device), ranks in placed.items():
            self._places[gang][host][device] = ranks

    def told(self) -> dict[str, dict[str, Any]]:
        """What each gang does that is up or coming back: "serves" which trial, "idle" or "lost"; and where it is."""
        free = set(self.free)
        found: dict[str, dict[str, Any]] = {}
        for gang in self.sizes:
            work = self.busy.get(gang)
            does = "serves" if work else "idle" if gang in free else "lost"
            found[gang] = {"does": does, "trial": work.run.id if work else "", "places": self._places[gang]}
        return found

    def free_one(self, run: TrialRun, *, at_any_cost: bool = False) -> str | None:
        """A free gang of a trial's size, if there is one: where it stands itself, or else where no other does.

        Args:
            run: the trial.
            at_any_cost: also one that another has just left, and which will be chosen next.
        """
        rated = {gang: self._cost(gang, run) for gang in self.free if self.sizes[gang] == run.workers}
        best = min(rated, key=rated.__getitem__, default="")
        return best if best and (at_any_cost or rated[best] < _GOES_ON) else None

    def _cost(self, gang: str, run: TrialRun) -> int:
        stands = self._stands.get(gang)
        if stands is run:
            return 0
        if stands is None or stands.trial.is_finished():
            return 1
        return _GOES_ON if stands.trial.status == Trial.PENDING else 2

    def begin(self, gang: str, run: TrialRun, assignment: Assignment) -> None:
        """A free gang got work."""
        now = self._clock()
        self._leave(gang)
        if run.id in self.waiting:
            self._waited[run.id] += now - self.waiting.pop(run.id)[1]
        self.busy[gang] = Work(run=run, assignment=assignment, since=now, heard=now)

    def heard(self, gang: str, trial_id: str, reports: Sequence[Report] = ()) -> TrialRun | None:
        """A gang told of a trial; returns it, or None where it serves another: news may come late."""
        work = self.busy.get(gang)
        if work is None or work.run.id != trial_id:
            return None
        work.heard = self._clock()
        if reports:
            work.reached = reports[-1].step
        return work.run

    def waits(self, gang: str) -> None:
        """A gang said that it waits for its storage."""
        if work := self.busy.get(gang):
            work.heard = self._clock()

    def done(self, gang: str) -> Work:
        """A gang is back from what it served, which is returned."""
        self.free.append(gang)
        work = self.busy.pop(gang)
        self._served[work.run.id] += self._clock() - work.since
        if work.assignment.goes_on:
            self._stands[gang] = work.run
        return work

    def lost(self, gang: str, *, ended: bool) -> TrialRun | None:
        """A gang lost its workers, and will be back if it has not `ended`; returns the trial that it served."""
        if gang in self.free:
            self._leave(gang)
        if ended:
            self.sizes.pop(gang, None)
        work = self.busy.pop(gang, None)
        if work is None:
            return None
        now = self._clock()
        self._served[work.run.id] += now - work.since
        self.waiting[work.run.id] = work.run, now
        return work.run

    def released(self, gang: str) -> None:
        """A free gang was given back."""
        self._leave(gang)
        del self.sizes[gang]

    def _leave(self, gang: str) -> None:
        """A gang is no longer free."""
        self.free.remove(gang)
        self._stands.pop(gang, None)

    def silent(self, seconds: float) -> Iterator[tuple[str, Work]]:
        """Gangs that were not heard of for so long; each is told once in that time."""
        now = self._clock()
        for gang, work in self.busy.items():
            if now - work.heard > seconds:
                work.heard = now
                yield gang, work

    @property
    def ahead(self) -> int:
        """Units that trials have reported of what is being served; the runs beside them do not count."""
        return sum(max(0, work.reached - work.run.resource) for work in self.busy.values() if work.run.tuned)

    @property
    def longest(self) -> float:
        """Seconds for which the longest assignment has been served."""
        return max((self._clock() - work.since for work in self.busy.values()), default=0.0)
