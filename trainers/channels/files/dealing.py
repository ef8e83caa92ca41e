"""Dealing of files to ranks: some read whole, of others some rows; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from trainers.channels.distribution import SHARDED, Distribution

_MOST, _LEAST = 1.1, 0.9
"""How far a rank's load may be from the mean, where something is read whole."""
_TURNS = 16
"""Turns a rank, in the most of which rows of a piece go round: loads are as near the mean as that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """Dealing of pieces to ranks, by number.

    Args:
        whole: by rank, what it reads whole.
        by_row: what several ranks read rows of.
        turns: for each of `by_row`, the ranks that its rows go to, in turn; so what is left is not read by all.
    """

    whole: tuple[tuple[int, ...], ...]
    by_row: tuple[int, ...]
    turns: tuple[tuple[int, ...], ...]


def deal_whole(weights: Sequence[int], world_size: int) -> tuple[tuple[int, ...], ...]:
    """Which pieces each rank gets, each of them whole: the heaviest first, each to the lightest rank.

    Where there are as many as ranks, each has one.

    Args:
        weights: of each piece, 1 at least.
        world_size: how many ranks there are.
    """
    return tuple(tuple(sorted(share)) for share in _to_the_lightest(weights, world_size)[0])


def _to_the_lightest(weights: Sequence[int], world_size: int) -> tuple[list[list[int]], list[int]]:
    """Pieces by rank, the heaviest first, each to the lightest rank; and what each rank then has."""
    shares: list[list[int]] = [[] for _ in range(world_size)]
    loads = [0] * world_size
    for index in sorted(range(len(weights)), key=lambda index: -weights[index]):
        lightest = loads.index(min(loads))
        shares[lightest].append(index)
        loads[lightest] += weights[index]
    return shares, loads


def by_request(distribution: Distribution, weights: Sequence[int], rank: int, world_size: int) -> Sequence[int]:
    """Which files a rank reads, all of each, where a user has said how they are dealt."""
    return deal_whole(weights, world_size)[rank] if distribution == SHARDED else range(len(weights))


def asked_for(distribution: Distribution | None) -> dict[str, Distribution]:
    """It for a record, where there is one."""
    return {"distribution": distribution} if distribution else {}


def deal(weights: Sequence[int], world_size: int) -> Deal:
    """Hands out whole as much as goes without one rank holding much more than another.

    The heaviest first, each to the lightest rank; then the lightest of the most loaded rank is read by row instead,
    until loads are balanced. Where a rank would have nothing whole, everything is read by row.

    What is read by row goes to few ranks: of ten pieces, four workers read two each whole, and two workers each rest.

    Args:
        weights: of each file or part.
        world_size: how many ranks there are.
    """
    shares, loads = _to_the_lightest(weights, world_size)
    mean, rest = sum(weights) / world_size, 0
    by_row: list[int] = []
    while min(loads) > 0:
        added = rest / world_size
        if max(loads) + added <= _MOST * mean and (not by_row or min(loads) + added >= _LEAST * mean):
            turns = _turns([weights[index] for index in sorted(by_row)], loads)
            return Deal(
                whole=tuple(tuple(sorted(share)) for share in shares), by_row=tuple(sorted(by_row)), turns=turns
            )
        heaviest = loads.index(max(loads))
        index = shares[heaviest].pop()  # The last that it got is its lightest.
        loads[heaviest] -= weights[index]
        rest += weights[index]
        by_row.append(index)
    turns = _turns(weights, [0] * world_size)
    return Deal(whole=((),) * world_size, by_row=tuple(range(len(weights))), turns=turns)


def _turns(weights: Sequence[int], loads: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The ranks that rows of pieces go to in turn, so that all ranks come to the same load, and few read a piece.

    The pieces lie behind one another, and each rank takes the next stretch of what it lacks.
    """
    rest, mean = sum(weights), (sum(weights) + sum(loads)) / len(loads)
    lacks = [max(0.0, mean - load) for load in loads]
    ends = list(accumulate(lack * rest / (sum(lacks) or 1) for lack in lacks))
    start, found = 0, []
    for weight in weights:
        stop = start + weight
        shares = [max(0.0, min(end, stop) - max(begin, start)) for begin, end in zip([0.0, *ends], ends, strict=False)]
        parts = [share / weight for share in shares] if weight else [1.0, *[0.0] * (len(loads) - 1)]
        found.append(_in_turn(_whole(parts, _TURNS * len(loads))))
        start = stop
    return tuple(found)


def _whole(parts: Sequence[float], total: int) -> list[int]:
    """Parts of 1 as whole numbers, as small as they come to, in the proportion that those of `total` have."""
    counts = [math.floor(part * total + 1e-6) for part in parts]
    most = sorted(range(len(parts)), key=lambda at: counts[at] - parts[at] * total)
    for at in most[: total - sum(counts)]:
        counts[at] += 1
    divisor = math.gcd(*counts)
    return [count // divisor for count in counts]


def _in_turn(counts: Sequence[int]) -> tuple[int, ...]:
    """Each rank as often as its count says, spread evenly."""
    places = [((time + 0.5) / count, rank) for rank, count in enumerate(counts) for time in range(count)]
    return tuple(rank for _, rank in sorted(places))
