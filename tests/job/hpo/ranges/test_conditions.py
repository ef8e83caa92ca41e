"""Conditions: what there is follows from the values of others, and what can never be met is refused."""

from __future__ import annotations

from hpo.ranges import (
    combinations,
    count_combinations,
    decode,
    search_space,
)
from tests.support.hpo.ranges.conditions import GRID


def test_a_grid_has_no_combination_twice_and_none_is_missing() -> None:
    found = list(combinations(GRID))
    drawn = [decode(GRID, {name: d.sample() for name, d in search_space(GRID).items()}) for _ in range(2000)]
    assert {repr(sorted(each.items())) for each in found} == {repr(sorted(each.items())) for each in drawn}
    assert len({repr(sorted(each.items())) for each in found}) == len(found) == count_combinations(GRID, 1000)
