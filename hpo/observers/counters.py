"""Counters of a running job's trials, updated with each change instead of by scans."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from hpo.ranking import Rank, Ranking, has_value, mean_error, ranks
from hpo.search import UNTUNED, TrialRun, standing_of, status_of
from hpo.strategies import Bracket, Cut, Plan, mean
from hpo.text import mean_text

_UNDER_WAY = ("Pending", "Running", "Paused")


@dataclass(slots=True, kw_only=True)
class Places:
    """One rung of one or more brackets that are alike.

    Args:
        size: its places in the plan.
        reached: trials that have trained to it.
        went_on: trials that its decision let go on.
        stopped: trials that its decision stopped.
        alike: of how many brackets this is the sum.
        decisions: in how many of them the rung was decided.
    """

    size: int
    reached: int = 0
    went_on: int = 0
    stopped: int = 0
    alike: int = 1
    decisions: int = 0

    @property
    def decided(self) -> bool:
        """Whether all that reached it were told what becomes of them."""
        return self.decisions == self.alike > 0


@dataclass(slots=True, kw_only=True)
class _Seen:
    """A trial as it was when it last changed."""

    run: TrialRun
    status: str = ""
    rungs: int = 0


@dataclass(slots=True)
class Tally:
    """Counts trials, rungs and the best so far; a change costs the same however many trials there are.

    Only where the best trial gets worse, or fails, the others are looked through for the best again.

    Args:
        plan: the job's brackets.
        ranking: which trial is better.
    """

    plan: Plan
    ranking: Ranking
    places: list[list[Places]] = field(init=False)
    """By bracket, by rung."""
    kinds: dict[Bracket, list[Places]] = field(init=False)
    """The same, added up over brackets that are alike."""
    statuses: Counter[str] = field(default_factory=Counter)
    best: TrialRun | None = None
    best_value: float = math.nan
    """Of the best; where each configuration is trained several times, the mean of its configuration."""
    best_error: float | None = None
    """The standard error of that mean; None where it is not one of several trials."""
    _rank: Rank = ()
    _configurations: dict[int, dict[int, TrialRun]] = field(default_factory=dict)
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = [[Places(size=size) for size in bracket.sizes] for bracket in self.plan.brackets]
        self.kinds = {
            bracket: [Places(size=size * alike, alike=alike) for size in bracket.sizes]
            for bracket, alike in Counter(self.plan.brackets).items()
        }

    def trial(self, run: TrialRun) -> bool:
        """A trial changed; returns whether the best so far improved."""
        if run.id == UNTUNED:
            return False
        seen = self._seen.setdefault(run.id, _Seen(run=run))
        status = status_of(run)
        if status != seen.status:
            self.statuses[seen.status] -= bool(seen.status)
            self.statuses[status] += 1
            seen.status = status
        self._climb(seen)
        return self._compare(run)

    def rung(self, cut: Cut) -> None:
        """A rung was decided."""
        for places in self._both(cut.bracket, self.plan.brackets[cut.bracket].rungs.index(cut.resource)):
            places.went_on += len(cut.went_on)
            places.stopped += len(cut.stopped)
            places.decisions += 1

    @property
    def best_text(self) -> str:
        """The best so far in words, and of how many trials it is the mean."""
        if self.best_error is None:
            return f"{self.best_value:.5f}"
        return mean_text(self.best_value, self.best_error, self.plan.repeats)

    @property
    def ended(self) -> int:
        """Trials that will not train again."""
        return self.statuses.total() - sum(self.statuses[status] for status in _UNDER_WAY)

    def _climb(self, seen: _Seen) -> None:
        """Counts the rungs newly reached; a trial whose own length is shorter reaches the rest at its end."""
        if seen.run.bracket is None:
            return
        rungs = self.plan.brackets[seen.run.bracket].rungs
        while seen.rungs < len(rungs) and (seen.run.resource >= rungs[seen.rungs] or seen.status == "Completed"):
            for places in self._both(seen.run.bracket, seen.rungs):
                places.reached += 1
            seen.rungs += 1

    def _both(self, bracket: int, rung: int) -> tuple[Places, Places]:
        return self.places[bracket][rung], self.kinds[self.plan.brackets[bracket]][rung]

    def _members(self, run: TrialRun) -> list[TrialRun]:
        """The trials of a trial's configuration, as far as they have begun."""
        if self.plan.repeats == 1:
            return [run]
        members = self._configurations.setdefault(run.number // self.plan.repeats, {})
        members[run.number] = run
        return list(members.values())

    def _compare(self, run: TrialRun) -> bool:
        members = self._members(run)
        found = ranks(self.ranking, (standing_of(self.ranking, each) for each in members), self.plan.repeats)
        run = min(members, key=lambda each: found[each.number])
        rank = found[run.number]
        if self.best in members and rank > self._rank:
            self.best, self.best_value, self.best_error = None, math.nan, None
            for seen in self._seen.values():
                self._compare(seen.run)
            return False
        if not has_value(rank) or (self.best is not None and rank >= self._rank):
            return False
        before, self._rank = self.best_value, rank
        values = [self.ranking.counts(each.value, each.best_value) for each in members]
        self.best, self.best_value, self.best_error = run, mean(values), mean_error(values)
        return self.ranking.better(self.best_value, before)
