"""Promotions of ASHA: which trial goes on from its rung when a gang is free; pure.

Source: Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar, "A System for Massively Parallel
Hyperparameter Tuning", MLSys 2020, algorithm 2.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from hpo.ranking import Rank
from hpo.strategies.hyperband import Cut, Entry, Plan, Standings, State, cutting, halvings_of, nearest_rungs


def lay_out_asynchronous(max_jobs: int, min_resource: int, max_resource: int, reduction_factor: int = 3) -> Plan:
    """One bracket for `max_jobs` trials, of which one in `reduction_factor` goes on at each rung, and one to the end.

    Args:
        max_jobs: trials in all.
        min_resource: units before the first rung.
        max_resource: units of a trial that runs to the end.
        reduction_factor: eta; one in so many goes on at each rung.

    Raises:
        ConfigurationError: a value is out of range.
    """
    depth = halvings_of(max_jobs, min_resource, max_resource, reduction_factor)
    bracket = cutting(max_jobs, nearest_rungs(max_resource, depth, reduction_factor), reduction_factor)
    return Plan(brackets=(bracket,), max_resource=max_resource, eta=reduction_factor)


def grown(plan: Plan, max_jobs: int) -> Plan:
    """The plan of a job that is to have more trials: they have a bracket of their own, behind those that there are."""
    assert plan.eta is not None, "it was laid out here"
    more = cutting(max_jobs - plan.trials, plan.brackets[0].rungs, plan.eta)
    return Plan(brackets=(*plan.brackets, more), max_resource=plan.max_resource, eta=plan.eta)


@dataclass(slots=True, kw_only=True)
class _Rung:
    """A rung of a bracket: what came to it, and what went on from it."""

    resource: int
    came: int = 0
    """Trials that trained to it, or were lost on their way: those count as worse than any other."""
    ranks: list[Rank] = field(default_factory=list)
    """Of those with a value, the best first."""
    waiting: list[tuple[Rank, str]] = field(default_factory=list)
    """Those that have not gone on, the best first."""
    went_on: list[tuple[Rank, str]] = field(default_factory=list)


class Promotions(Standings):
    """Decides which trials go on, by what has come so far: another order of the same values gives other decisions.

    A trial goes on from a rung once it is among the best of those that came there, one in eta, no more of them than
    that have gone on, and a gang is free to train it: that is asked with `promote`, from the last rung down, before a
    new trial is begun. Ties go to the trial that was added first; a value that is not finite never goes on.

    The paper lets all go on that are among the best when they come. Where a model's new trials are better than those
    before, that could be most of them; one in eta is also what the plan, and its greatest cost, says before the start.

    The paper's search has no end, and grows its base for as long as a rung needs it. A bracket here has so many trials:
    when all were begun, none is being trained and none may be promoted, the best goes on from the last rung that any
    came to, so that one trains to the end; then those that wait are stopped.

    Args:
        plan: the brackets, from `lay_out_asynchronous`.
        maximize: whether larger values are better.
    """

    def __init__(self, plan: Plan, *, maximize: bool) -> None:
        assert plan.eta is not None, "it was laid out here"
        super().__init__(plan, maximize=maximize)
        self._eta = plan.eta
        self._rungs = [[_Rung(resource=resource) for resource in bracket.rungs[:-1]] for bracket in plan.brackets]
        self._first = 0
        """Brackets before this one are over; their rungs are in `cuts`."""

    def close(self) -> set[str]:
        """No more trials will come. Returns the trials this decides."""
        self._closed = True
        return self._end()

    def runnable(self) -> Iterable[str]:
        """Trials that have units to train, running or not, in the order in which they got them."""
        for training in self._training[self._first :]:
            yield from training

    def promote(self) -> str | None:
        """The trial that goes on now, from the last rung down; None where none may."""
        for index in range(self._first, len(self._rungs)):
            for rung in reversed(self._rungs[index]):
                if self._may_promote(rung):
                    return self._promoted(index, rung)
            if self._is_still(index) and (last := self._last_come_to(index)) is not None:
                return self._promoted(index, last)
        return None

    # ---- within

    def _come(self, trial: str, entry: Entry) -> set[str]:
        rung = self._rungs[entry.bracket][entry.rung]
        rung.came += 1
        if math.isfinite(entry.value):
            rank = self._rank(trial)
            insort(rung.ranks, rank)
            insort(rung.waiting, (rank, trial))
            return self._end()
        entry.state = State.STOPPED
        return self._end() | {trial}

    def _lose(self, trial: str, entry: Entry, *, waited: bool) -> set[str]:
        rungs = self._rungs[entry.bracket]
        if waited:
            rungs[entry.rung].waiting.remove((self._rank(trial), trial))
        elif entry.rung < len(rungs):
            rungs[entry.rung].came += 1
        return self._end()

    def _may_promote(self, rung: _Rung) -> bool:
        """Whether the best that waits at a rung is among the best of all that came there, and its place is free."""
        places = rung.came // self._eta
        return (
            len(rung.went_on) < places and bool(rung.waiting) and bisect_left(rung.ranks, rung.waiting[0][0]) < places
        )

    def _promoted(self, index: int, rung: _Rung) -> str:
        rank, trial = rung.waiting.pop(0)
        rung.went_on.append((rank, trial))
        entry = self._entries[trial]
        entry.rung, entry.state = entry.rung + 1, State.TRAINING
        self._training[index][trial] = None
        return trial

    def _is_still(self, index: int) -> bool:
        """Whether all trials of a bracket were begun and none of them is being trained."""
        return self._is_whole(index) and not self._training[index]

    def _last_come_to(self, index: int) -> _Rung | None:
        """The last rung of a bracket that trials came to, if none went on from it and one of them may."""
        came = [rung for rung in self._rungs[index] if rung.came]
        return came[-1] if came and came[-1].waiting and not came[-1].went_on else None

    def _end(self) -> set[str]:
        """Ends the brackets in which nothing can be promoted any more: stops those that wait there."""
        stopped: set[str] = set()
        while self._first < len(self._rungs) and self._is_still(self._first) and self._added[self._first]:
            rungs = self._rungs[self._first]
            if any(map(self._may_promote, rungs)) or self._last_come_to(self._first) is not None:
                break
            for rung in rungs:
                left = tuple(trial for _, trial in rung.waiting)
                for trial in left:
                    self._entries[trial].state = State.STOPPED
                stopped.update(left)
                if rung.came:
                    went_on = tuple(trial for _, trial in sorted(rung.went_on))
                    self.cuts.append(Cut(bracket=self._first, resource=rung.resource, went_on=went_on, stopped=left))
                rung.waiting.clear()
            self._first += 1
        return stopped
