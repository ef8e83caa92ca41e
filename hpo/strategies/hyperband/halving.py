"""Successive halving: a rung is cut once all trials of its bracket have come to it, and the best go on; pure.

Source: Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar, "Hyperband: A Novel Bandit-Based Approach to Hyperparameter
Optimization", JMLR 18 (2018), algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hpo.strategies.hyperband.plan import Plan
from hpo.strategies.hyperband.standings import Cut, Entry, Standings, State


class Hyperband(Standings):
    """Decides which trials go on.

    It knows neither time nor workers: the same values give the same decisions, whatever the order in which they come.

    A rung is cut when its bracket is full and all of it have reached the rung, failed, or ended. The best go on, as
    many as the plan has places for; ties go to the trial that was added first. A value that is not finite ranks last
    and never goes on.

    Args:
        plan: the brackets.
        maximize: whether larger values are better.
    """

    def __init__(self, plan: Plan, *, maximize: bool) -> None:
        super().__init__(plan, maximize=maximize)
        # In a bracket, all that train do so to the same rung, and are in the order in which they were added.
        self._waiting: list[dict[str, None]] = [{} for _ in plan.brackets]
        self._active: set[int] = set()
        """Brackets in which a trial has units to train."""

    def add(self, trial: str) -> int:
        """See `Standings.add`."""
        index = super().add(trial)
        self._active.add(index)
        return index

    def close(self) -> set[str]:
        """No more trials will come: brackets that are not full count as full. Returns the trials this decides."""
        self._closed = True
        return set().union(*(self._cut(index) for index in range(len(self.plan.brackets))))

    def runnable(self) -> Iterable[str]:
        """Trials that have units to train, running or not, first bracket first, in the order of addition in it.

        Take what is needed of it before the next decision: it is not a copy.
        """
        for index in sorted(self._active):
            yield from self._training[index]

    def _come(self, trial: str, entry: Entry) -> set[str]:
        self._waiting[entry.bracket][trial] = None
        return self._cut(entry.bracket)

    def _lose(self, trial: str, entry: Entry, *, waited: bool) -> set[str]:
        if waited:
            del self._waiting[entry.bracket][trial]
        return self._cut(entry.bracket)

    def _cut(self, index: int) -> set[str]:
        bracket = self.plan.brackets[index]
        if self._training[index]:
            return set()
        self._active.discard(index)
        if not self._waiting[index] or not self._is_whole(index):
            return set()
        waiting, self._waiting[index] = self._waiting[index], {}
        rung = self._entries[next(iter(waiting))].rung
        ranked = sorted(waiting, key=self._rank)
        finite = [trial for trial in ranked if math.isfinite(self._entries[trial].value)]
        went_on = finite[: bracket.sizes[rung + 1]]
        stopped = ranked[len(went_on) :]
        for trial in stopped:
            self._entries[trial].state = State.STOPPED
        for trial in sorted(went_on, key=lambda trial: self._entries[trial].number):
            self._entries[trial].state, self._entries[trial].rung = State.TRAINING, rung + 1
            self._training[index][trial] = None
            self._active.add(index)
        self.cuts.append(
            Cut(bracket=index, resource=bracket.rungs[rung], went_on=tuple(went_on), stopped=tuple(stopped))
        )
        return set(waiting)
