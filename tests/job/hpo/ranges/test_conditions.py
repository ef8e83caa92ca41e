"""Conditions: what there is follows from the values of others, and what can never be met is refused."""

from __future__ import annotations

from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    NormalParameter,
    ParameterRange,
    combinations,
    count_combinations,
    decode,
    search_space,
)

RANGES: dict[str, ParameterRange] = {
    "momentum": ContinuousParameter(0.5, 0.99, when={"optimizer": "sgd"}),
    "optimizer": CategoricalParameter(["sgd", "adam", "none"]),
    "nesterov": CategoricalParameter([True, False], when={"optimizer": ["sgd"], "layers": [2, 3]}),
    "decay": NormalParameter(-7, 1, "Logarithmic", when={"nesterov": [True]}),
    "layers": IntegerParameter(1, 3),
    "units": IntegerParameter(32, 96, step=32, when={"layers": [3]}),
}


GRID = {name: bounds for name, bounds in RANGES.items() if bounds.size is not None}


def test_a_grid_has_no_combination_twice_and_none_is_missing() -> None:
    found = list(combinations(GRID))
    drawn = [decode(GRID, {name: d.sample() for name, d in search_space(GRID).items()}) for _ in range(2000)]
    assert {repr(sorted(each.items())) for each in found} == {repr(sorted(each.items())) for each in drawn}
    assert len({repr(sorted(each.items())) for each in found}) == len(found) == count_combinations(GRID, 1000)
