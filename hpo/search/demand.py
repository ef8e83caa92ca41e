"""Demand for gangs: how many of each size a search could keep busy, and the seconds that are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from hpo.cost import Pace
from hpo.search.trial import Search, TrialRun
from hpo.strategies import Plan


class Demand:
    """Counts a search's trials by the size of their gangs, so that no round of the loop looks through all of them.

    Args:
        search: whose.
        plan: its brackets, where they are known.
    """

    def __init__(self, search: Search, plan: Plan | None) -> None:
        self.exhausted = False
        """Whether the searcher has nothing more."""
        self._search = search
        self._static = search.workers(search.static)
        self._drawn: Counter[int] = Counter()
        self._unfinished: Counter[int] = Counter()
        self._pace = Pace()
        self._units = self._assignments = search.max_jobs * search.max_resource
        if plan is not None:
            self._units = plan.resource
            self._assignments = plan.assignments

    def drawn(self, run: TrialRun) -> None:
        """A trial was suggested."""
        self._drawn[run.workers] += 1
        self._unfinished[run.workers] += 1

    def forked(self, run: TrialRun) -> None:
        """A trial took another's place; it is none of those that were to be suggested."""
        self._unfinished[run.workers] += 1

    def ended(self, run: TrialRun) -> None:
        """A trial will not train again."""
        self._unfinished[run.workers] -= 1

    def served(self, units: int, seconds: float) -> None:
        """An assignment took so many gang-seconds."""
        self._pace.served(units, seconds)

    def recalled(self) -> None:
        """An assignment was served before this run."""
        self._assignments -= 1

    @property
    def to_come(self) -> int:
        """Trials that are still to be suggested."""
        return 0 if self.exhausted else self._search.max_jobs - self._drawn.total()

    def sizes(self, at_work: Collection[TrialRun], there: Collection[int], *, untuned_left: bool) -> dict[int, int]:
        """How many gangs of each size could be busy at present, the most urgent size first.

        Trials that are not chosen yet, and those to come, count for sizes that have a gang already: which others will
        be needed is not known before, and a gang is neither started nor given back on a guess.

        Args:
            at_work: what is chosen and waits for a gang, then what is being served.
            there: the sizes of the gangs that there are.
            untuned_left: whether the un-tuned run is still to come.
        """
        sizes = Counter(run.workers for run in at_work)
        waiting = self._unfinished - Counter(run.workers for run in at_work if run.tuned)
        known = {*there, *sizes} or {next(iter(waiting), self._static)}
        usual = max(known, key=lambda workers: (self._drawn[workers], -workers))
        waiting[usual] += self.to_come
        for workers in sorted(known, key=lambda workers: (-waiting[workers], workers)):
            sizes[workers] += min(waiting[workers], self._search.max_parallel_jobs - sizes.total())
        if not sizes.total() and untuned_left:
            sizes[self._static] = 1
        return {workers: count for workers, count in sizes.items() if count}

    def seconds_left(self, trained: int, running: float) -> float | None:
        """Gang-seconds of work left at most, from what assignments have cost so far; None before enough is known.

        Args:
            trained: units by all trials so far.
            running: seconds for which the longest assignment has been served, unfinished.
        """
        units, assignments = self._units - trained, self._assignments - self._pace.assignments
        return self._pace.seconds_left(max(0, units), max(0, assignments), running)
