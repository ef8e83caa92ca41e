"""Layouts: the brackets of a job of so many trials, and their rungs; pure.

Source: Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar, "Hyperband: A Novel Bandit-Based Approach to Hyperparameter
Optimization", JMLR 18 (2018), algorithm 1. Trials resume where they stopped, so a rung costs what it adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hpo.strategies.hyperband.plan import MOST_JOBS, MOST_RESOURCE, Bracket, Plan
from trainers.errors import ConfigurationError


def lay_out(max_jobs: int, min_resource: int, max_resource: int, reduction_factor: int = 3) -> Plan:
    """Brackets for exactly `max_jobs` trials, most aggressive first.

    Whole rounds of the paper's brackets come first; what is left is scaled: first the most aggressive bracket shrinks,
    down to the size of the next, then all in proportion. Cutting the largest bracket first keeps enough trials in the
    others, which forgive a slow start; in a simulation on 400 recorded learning curves, 30 trials so laid out lost less
    than strict proportions did (0.0019 of AUC against 0.0028) for 37% of the resource against 29%.

    Args:
        max_jobs: trials in all.
        min_resource: units before the first rung at which a trial can be stopped.
        max_resource: units of a trial that runs to the end.
        reduction_factor: eta; one in so many goes on at each rung.

    Raises:
        ConfigurationError: a value is out of range.
    """
    halvings = halvings_of(max_jobs, min_resource, max_resource, reduction_factor)
    brackets = [
        _bracket(trials, depth, max_resource, reduction_factor)
        for trials, depth in _shared_out(max_jobs, range(halvings, -1, -1), reduction_factor)
    ]
    return Plan(brackets=tuple(brackets), max_resource=max_resource)


def lay_out_cutting(max_jobs: int, min_resource: int, max_resource: int, reduction_factor: int = 3) -> Plan:
    """Brackets for exactly `max_jobs` trials, each of which stops some of them, most aggressive first.

    The paper's bracket that trains every trial to the end is left out, and rungs are the nearest whole units to the
    fractions of `max_resource`. A model needs no bracket that forgives a slow start as much as it needs many trials: on
    nine recorded tasks (docs/guides/model.md) it lost less so at every budget. Rungs let through as many trials as in
    the paper, rounded down. What is left of a job behind whole rounds is scaled as in `lay_out`.

    Args:
        max_jobs: trials in all.
        min_resource: units before the first rung at which a trial can be stopped.
        max_resource: units of a trial that runs to the end.
        reduction_factor: eta; one in so many goes on at each rung.

    Raises:
        ConfigurationError: a value is out of range.
    """
    halvings = halvings_of(max_jobs, min_resource, max_resource, reduction_factor)
    if not halvings:
        return run_all(max_jobs, max_resource)
    brackets = [
        cutting(trials, nearest_rungs(max_resource, depth, reduction_factor), reduction_factor)
        for trials, depth in _shared_out(max_jobs, range(halvings, 0, -1), reduction_factor)
    ]
    return Plan(brackets=tuple(brackets), max_resource=max_resource)


def run_all(max_jobs: int, max_resource: int) -> Plan:
    """The plan of a search without early stopping: one bracket, nothing cut."""
    check_within("max_jobs", max_jobs, 1, MOST_JOBS)
    check_within("max_resource", max_resource, 1, MOST_RESOURCE)
    return Plan(brackets=(Bracket(rungs=(max_resource,), sizes=(max_jobs,)),), max_resource=max_resource)


def halvings_of(max_jobs: int, min_resource: int, max_resource: int, reduction_factor: int) -> int:
    """How many rungs there are at most before the last one."""
    check_within("max_jobs", max_jobs, 1, MOST_JOBS)
    check_within("min_resource", min_resource, 1, MOST_RESOURCE)
    check_within("max_resource", max_resource, 1, MOST_RESOURCE)
    check_within("reduction_factor", reduction_factor, 2, MOST_RESOURCE)
    if max_resource < min_resource:
        raise ConfigurationError(
            f"max_resource is {max_resource}, less than min_resource, {min_resource}; give max_resource >= min_resource"
        )
    halvings = 0
    while min_resource * reduction_factor ** (halvings + 1) <= max_resource:
        halvings += 1
    return halvings


def _shared_out(max_jobs: int, depths: Sequence[int], eta: int) -> Iterator[tuple[int, int]]:
    """Trials and halvings of each bracket: whole rounds of the paper's sizes, and what is left, scaled."""
    whole = [-(-(depths[0] + 1) * eta**s // (s + 1)) for s in depths]
    rounds, left = divmod(max_jobs, sum(whole))
    counts = whole * rounds + (_scale(whole, left) if left else [])
    return ((count, depth) for count, depth in zip(counts, [*depths] * (rounds + 1), strict=False) if count)


def cutting(trials: int, rungs: tuple[int, ...], eta: int) -> Bracket:
    """A bracket whose rungs let one trial in eta through, rounded down, and one at least."""
    return Bracket(rungs=rungs, sizes=tuple(max(1, trials // eta**s) for s in range(len(rungs))))


def nearest_rungs(max_resource: int, halvings: int, eta: int) -> tuple[int, ...]:
    """Rungs of so many halvings, at the whole units nearest to fractions of `max_resource`."""
    return tuple(_nearest(max_resource, eta**s) for s in range(halvings, -1, -1))


def _nearest(dividend: int, divisor: int) -> int:
    """The whole number nearest to a fraction, of two the larger; whole numbers alone, so that nothing is rounded."""
    return (2 * dividend + divisor) // (2 * divisor)


def check_within(name: str, value: int, least: int, most: int) -> None:
    """Refuses a value that is out of range."""
    if value < least:
        raise ConfigurationError(f"{name} is {value}; give at least {least}")
    if value > most:
        raise ConfigurationError(f"{name} is {value}; give at most {most}")


def _bracket(trials: int, halvings: int, max_resource: int, eta: int) -> Bracket:
    sizes = [trials]
    for _ in range(halvings):
        sizes.append(math.ceil(sizes[-1] / eta))
    return Bracket(rungs=tuple(max_resource // eta**s for s in range(halvings, -1, -1)), sizes=tuple(sizes))


def _scale(whole: list[int], trials: int) -> list[int]:
    """Divides fewer trials than a whole round among its brackets, most aggressive first."""
    if len(whole) == 1:
        return [trials]
    weights = [max(whole[1], min(whole[0], trials - sum(whole[1:]))), *whole[1:]]
    total = sum(weights)
    shares = [trials * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(trials * weights[i] % total), i))
    for i in by_remainder[: trials - sum(shares)]:
        shares[i] += 1
    # A bracket of one has nothing to cut: its trial joins the more aggressive neighbour; the first's joins the next.
    for i in range(len(shares) - 2, 0, -1):
        if shares[i] == 1:
            shares[i - 1], shares[i] = shares[i - 1] + 1, 0
    if shares[0] == 1 and len(shares) > 2:
        shares[0], shares[1] = 0, shares[1] + 1
    elif shares[0] == 1:
        shares[0], shares[1] = 1 + shares[1], 0
    return shares
