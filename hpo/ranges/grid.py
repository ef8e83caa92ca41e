"""Grids: every combination of the values of ranges once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from hpo.ranges.conditions import is_met, parents_first, present
from hpo.ranges.kinds import ParameterRange
from hpo.ranges.values import Scalar


def combinations(ranges: Mapping[str, ParameterRange]) -> Iterator[dict[str, Scalar]]:
    """Every combination of the values of ranges that have a `size`: what is not there has none.

    In the order of the names, each behind those that its condition is about, the last changing fastest: in which order
    ranges were written or restored does not matter.
    """
    order = parents_first(ranges)
    members = {name: ranges[name].members() for name in order}

    def behind(place: int, values: dict[str, Scalar]) -> Iterator[dict[str, Scalar]]:
        if place == len(order):
            yield values
        elif is_met(ranges, order[place], values):
            for value in members[order[place]]:
                yield from behind(place + 1, {**values, order[place]: value})
        else:
            yield from behind(place + 1, values)

    return behind(0, {})


def count_combinations(ranges: Mapping[str, ParameterRange], most: int) -> int:
    """How many combinations there are of ranges that have a `size`; beyond `most`, perhaps fewer than there are."""
    sizes = {name: bounds.size or 0 for name, bounds in ranges.items()}
    parents = {other: ranges[other] for bounds in ranges.values() for other in bounds.when}
    largest = max((sizes[name] for name in parents), default=0)
    if largest > most:
        return largest
    total = 0
    for values in combinations(parents):
        total += math.prod(sizes[name] for name in present(ranges, values) if name not in parents)
        if total > most:
            break
    return total
