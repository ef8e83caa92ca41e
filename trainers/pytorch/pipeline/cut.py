"""Cuts of a sequence of members into stages: by hand, or with the slowest stage as fast as can be; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from trainers.errors import TrialError

Fits = Callable[[int, int, int], bool]
"""Whether a stage can hold members `first` to `end - 1`: called with its number, `first` and `end`."""


def balanced(costs: Sequence[float], stages: int, fits: Fits | None = None) -> tuple[int, ...]:
    """The cuts whose most expensive stage costs least; of several such, the most even ones.

    Dynamic programming over prefixes, as in Narayanan et al., "PipeDream", SOSP 2019, section 3.1, with one worker a
    stage.

    Args:
        costs: of each member, in seconds or parameters.
        stages: how many there are to be.
        fits: says which stages are possible; None: all.

    Returns:
        Where stages begin behind the first, as places in the sequence.

    Raises:
        TrialError: there are more stages than members, or no cut that fits.
    """
    members = len(costs)
    _check_number(members, stages)
    sums = [0.0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    # Of the first `end` members in so many stages: (most, sum of squares), and where the last of them begins.
    best: list[tuple[float, float] | None] = [(0.0, 0.0)] + [None] * members
    begins: list[list[int]] = []
    for stage in range(stages):
        after: list[tuple[float, float] | None] = [None] * (members + 1)
        begin = [0] * (members + 1)
        for end in range(stage + 1, members + 1):
            for first in range(stage, end):
                before = best[first]
                if before is None or (fits and not fits(stage, first, end)):
                    continue
                cost = sums[end] - sums[first]
                value = max(before[0], cost), before[1] + cost * cost
                known = after[end]
                if known is None or value < known:
                    after[end], begin[end] = value, first
        best = after
        begins.append(begin)
    if best[members] is None:
        raise TrialError(
            f"no cut of the sequence's {members} members into {stages} stages fits: each stage needs parameters to "
            "train, and has to fit into a worker's memory; give fewer stages, more workers, or ModelPlan.cuts"
        )
    cuts, end = [], members
    for begin in reversed(begins):
        end = begin[end]
        cuts.append(end)
    return tuple(reversed(cuts[:-1]))


def by_hand(cuts: Sequence[int], members: int, stages: int) -> tuple[int, ...]:
    """The cuts that a plan gives, checked.

    Raises:
        TrialError: they are no places in the sequence, not in order, or not those of so many stages.
    """
    _check_number(members, stages)
    if len(cuts) != stages - 1:
        raise TrialError(
            f"ModelPlan.cuts is {tuple(cuts)}, which makes {len(cuts) + 1} stages, and the layout has {stages}; give "
            f"{stages - 1} places, or none"
        )
    edges = [0, *cuts, members]
    if any(isinstance(cut, bool) or not isinstance(cut, int) for cut in cuts) or any(
        first >= end for first, end in pairwise(edges)
    ):
        raise TrialError(
            f"ModelPlan.cuts is {tuple(cuts)}; give places in the sequence in ascending order, 1 to {members - 1}"
        )
    return tuple(cuts)


def ranges(cuts: Sequence[int], members: int) -> list[range]:
    """The members of each stage."""
    edges = [0, *cuts, members]
    return [range(first, end) for first, end in pairwise(edges)]


def greatest_divisor(rows: int, most: int) -> int:
    """The greatest number of equal micro-batches that so many rows can be cut into, `most` at most."""
    return max(number for number in range(1, min(rows, most) + 1) if rows % number == 0)


def _check_number(members: int, stages: int) -> None:
    if stages > members:
        raise TrialError(
            f"the layout has {stages} stages, and the model's sequence {members} members; give fewer stages, or name "
            "the members of larger modules in ModelPlan.sequence"
        )
