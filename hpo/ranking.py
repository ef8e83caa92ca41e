"""Which of a job's trials is better: one order for decisions, for views, for what stays and for the record."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import stdev
from typing import Self, TypeVar

Value = TypeVar("Value")

Rank = tuple[float, ...]
"""Where a trial stands among the others, the smallest first."""

DIVERGED, FAILED = 1, 2
"""Trials that are behind all others, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a trial is ranked by.

    Args:
        value: its objective; None or not finite where it has none.
        resource: the units that this took.
        number: its place in the order of suggestion.
        lost: `DIVERGED` or `FAILED`; 0 for neither.
        partial: a person stopped it, so that it is no repeat of its configuration that others could be averaged with.
    """

    value: float | None
    resource: int | None
    number: int
    lost: int = 0
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Orders trials by their objective; ties go to the less resource, then to the trial that was suggested first.

    Values that are not finite are behind those that are, and trials that diverged or failed behind all others.

    Args:
        maximize: whether larger values are better.
        by_best: compare trials by their best value so far instead of their last.
    """

    maximize: bool
    by_best: bool = False

    @classmethod
    def of(cls, objective_type: str, objective_value: str) -> Self:
        """By the settings of a job: "Maximize" or "Minimize", and "last" or "best"."""
        return cls(maximize=objective_type == "Maximize", by_best=objective_value == "best")

    def counts(self, last: Value, best: Value) -> Value:
        """That of two by which trials are compared."""
        return best if self.by_best else last

    def better(self, value: float, other: float) -> bool:
        """Whether a value is better than another; NaN and infinity never are, and every finite value beats NaN."""
        return math.isfinite(value) and not (value <= other if self.maximize else value >= other)

    def rank(self, value: float | None, resource: int | None, number: int, *, lost: int = 0) -> Rank:
        """Where a trial stands.

        Args:
            value: its objective; None or not finite where it has none.
            resource: the units that this took.
            number: its place in the order of suggestion.
            lost: `DIVERGED` or `FAILED`; 0 for neither.
        """
        if value is None or not math.isfinite(value):
            return (lost, 1, 0.0, resource or 0, number)
        return (lost, 0, -value if self.maximize else value, resource or 0, number)

    def rank_standing(self, standing: Standing) -> Rank:
        """The same of a standing."""
        return self.rank(standing.value, standing.resource, standing.number, lost=standing.lost)


def ranks(ranking: Ranking, standings: Iterable[Standing], repeats: int) -> dict[int, Rank]:
    """Where trials stand among each other, by their numbers.

    Where each configuration is trained several times, those of the configuration with the best mean come first, the
    best of them before the others. One of which a trial failed or diverged counts as failed or diverged; one of which
    a trial has no value has none.

    Args:
        ranking: which value is better.
        standings: all trials of these configurations that there are.
        repeats: trials of each configuration, which follow each other.
    """
    if repeats == 1:
        return {each.number: ranking.rank_standing(each) for each in standings}
    together: dict[int, list[Standing]] = defaultdict(list)
    for standing in standings:
        together[standing.number // repeats].append(standing)
    found: dict[int, Rank] = {}
    for members in together.values():
        before = ranking.rank_standing(configuration(members, repeats))
        found |= {each.number: (*before, *ranking.rank_standing(each)) for each in members}
    return found


def configuration(members: Sequence[Standing], repeats: int) -> Standing:
    """The standing of a configuration, by those of its trials: the mean of their values, if all of them have one.

    Of several of which a person stopped one, there is no mean.
    """
    members = sorted(members, key=lambda each: each.number)
    values = [each.value for each in members if each.value is not None and math.isfinite(each.value)]
    whole = len(values) == repeats and (repeats == 1 or not any(each.partial for each in members))
    return Standing(
        value=mean_of(values) if whole else None,
        resource=max(each.resource or 0 for each in members),
        number=members[0].number,
        lost=max(each.lost for each in members),
    )


def mean_of(values: Sequence[float]) -> float:
    """The mean of finite numbers, one or more; also where their sum is past the largest float."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


def mean_error(values: Sequence[float]) -> float | None:
    """The standard error of the mean of values, from how far they lie apart; None of fewer than two, or no float."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    try:
        return stdev(values) / math.sqrt(len(values))
    except OverflowError:
        return None


def best_of(trials: Iterable[Value], rank: Callable[[Value], Rank]) -> Value | None:
    """The first of trials by rank; None if none can be the best."""
    first = min(((rank(trial), trial) for trial in trials), key=itemgetter(0), default=None)
    return first[1] if first is not None and has_value(first[0]) else None


def has_value(rank: Rank) -> bool:
    """Whether the trial of a rank can be the best: it has a finite objective, and neither diverged nor failed."""
    return rank[:2] == (0, 0)
