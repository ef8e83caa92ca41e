"""Dealing of files to ranks: some read whole, of others some rows; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainers.channels.distribution import SHARDED, Distribution

_MOST, _LEAST = 1.1, 0.9
"""How far a rank's load may be from the mean, where something is read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """Dealing of pieces to ranks, by number.

    Args:
        whole: by rank, what it reads whole.
        by_row: what every rank reads its rows of.
    """

    whole: tuple[tuple[int, ...], ...]
    by_row: tuple[int, ...]


def deal_whole(weights: Sequence[int], world_size: int) -> tuple[tuple[int, ...], ...]:
    """Which pieces each rank gets, each of them whole: the heaviest first, each to the lightest rank.

    Where there are as many as ranks, each has one.

    Args:
        weights: of each piece, 1 at least.
        world_size: how many ranks there are.
    """
    shares: list[list[int]] = [[] for _ in range(world_size)]
    loads = [0] * world_size
    for index in sorted(range(len(weights)), key=lambda index: -weights[index]):
        lightest = loads.index(min(loads))
        shares[lightest].append(index)
        loads[lightest] += weights[index]
    return tuple(tuple(sorted(share)) for share in shares)


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

    Args:
        weights: of each file or part.
        world_size: how many ranks there are.
    """
    shares: list[list[int]] = [[] for _ in range(world_size)]
    loads = [0] * world_size
    for index in sorted(range(len(weights)), key=lambda index: -weights[index]):
        lightest = loads.index(min(loads))
        shares[lightest].append(index)
        loads[lightest] += weights[index]
    mean, rest = sum(weights) / world_size, 0
    by_row: list[int] = []
    while min(loads) > 0:
        added = rest / world_size
        if max(loads) + added <= _MOST * mean and (not by_row or min(loads) + added >= _LEAST * mean):
            return Deal(whole=tuple(tuple(sorted(share)) for share in shares), by_row=tuple(sorted(by_row)))
        heaviest = loads.index(max(loads))
        index = shares[heaviest].pop()  # The last that it got is its lightest.
        loads[heaviest] -= weights[index]
        rest += weights[index]
        by_row.append(index)
    return Deal(whole=((),) * world_size, by_row=tuple(range(len(weights))))
