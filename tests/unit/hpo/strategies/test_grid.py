"""Grid: every combination once, in an order that follows from the ranges, and no job for a grid that cannot be."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st
from ray.tune.search import Searcher

from hpo import CategoricalParameter, ContinuousParameter, IntegerParameter, NormalParameter
from hpo.ranges import ParameterRange, decode
from hpo.strategies.grid_strategy import GridStrategy
from hpo.strategies.strategy import Task
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError

CATEGORICAL = st.lists(
    st.sampled_from([None, True, 1, 1.0, "1", "x"]),
    min_size=1,
    max_size=4,
    unique_by=lambda value: (type(value), value),
).map(CategoricalParameter)
INTEGER = st.tuples(st.integers(-9, 9), st.integers(0, 3)).map(lambda drawn: IntegerParameter(drawn[0], sum(drawn)))
STEPS = st.sampled_from(
    [
        ContinuousParameter(0.1, 0.4, step=0.1),
        ContinuousParameter(0.1, 0.3, "Logarithmic", step=0.1),
        IntegerParameter(-4, 4, step=4),
        NormalParameter(0, 1, step=2),
        ContinuousParameter(2, 2),
    ]
)
GRIDS = st.dictionaries(st.sampled_from("abcdef"), CATEGORICAL | INTEGER | STEPS, min_size=1, max_size=4)


def searcher_of(ranges: dict[str, ParameterRange]) -> Searcher:
    plan = GridStrategy().plan(ranges, GridStrategy().trials(ranges, None), 9)
    return GridStrategy().prepare(Task(plan=plan, ranges=ranges, metric="m", mode="max", seed=1)).searcher


def suggested(ranges: dict[str, ParameterRange]) -> list[dict[str, Any]]:
    searcher, found = searcher_of(ranges), []
    while (point := searcher.suggest(f"job-{len(found):03d}")) != Searcher.FINISHED:
        found.append(decode(ranges, point))
    return found


def values(bounds: ParameterRange) -> list[Any]:
    if isinstance(bounds, CategoricalParameter):
        return bounds.values
    if isinstance(bounds, IntegerParameter):
        return list(range(int(bounds.min_value), int(bounds.max_value) + 1, int(bounds.step or 1)))
    first, step = round(10 * bounds.min_value), round(10 * (bounds.step or 1))
    return [number / 10 for number in range(first, round(10 * bounds.max_value) + 1, step)]


@given(GRIDS, st.randoms(use_true_random=False))
def test_every_combination_comes_once_in_an_order_of_the_ranges_alone(ranges: Any, shuffled: Any) -> None:
    names = sorted(ranges)
    expected = [repr(each) for each in itertools.product(*(values(ranges[name]) for name in names))]
    order = list(ranges)
    shuffled.shuffle(order)
    found = suggested({name: ranges[name] for name in order})
    assert [repr(tuple(each[name] for name in names)) for each in found] == expected
    assert GridStrategy().trials(ranges, None) == len(set(expected)) == len(expected)


@given(GRIDS, st.integers(1, 300))
def test_max_jobs_is_the_product_or_refused_with_both_numbers(ranges: Any, max_jobs: int) -> None:
    product = math.prod(len(values(bounds)) for bounds in ranges.values())
    if max_jobs == product:
        assert GridStrategy().plan(ranges, GridStrategy().trials(ranges, max_jobs), 7).trials == product
        return
    with refuses(ConfigurationError, field="max_jobs", value=max_jobs, remedy=str(product)):
        GridStrategy().trials(ranges, max_jobs)


def test_what_is_no_grid_is_refused_before_it_is_laid_out() -> None:
    continuous: dict[str, ParameterRange] = {"eta": ContinuousParameter(0.1, 1)}
    huge: dict[str, ParameterRange] = {"a": IntegerParameter(-(2**53), 2**53), "b": IntegerParameter(0, 2**53)}
    six: dict[str, ParameterRange] = {name: IntegerParameter(1, 10) for name in "abcdef"}
    refuses_each(
        [
            (
                lambda: GridStrategy().trials(continuous, None),
                ("eta", ContinuousParameter(0.1, 1), "continuous", "Grid", "step", "categorical"),
            ),
            (lambda: GridStrategy().trials(huge, None), ("combinations", "Grid", 100000, "Random")),
            (lambda: GridStrategy().trials(six, None), ("combinations", 1000000, "Grid", 100000, "Random")),
        ],
        ConfigurationError,
    )


def test_a_grid_does_not_grow() -> None:
    ranges: dict[str, ParameterRange] = {"a": IntegerParameter(1, 3)}
    with refuses(ConfigurationError, field="max_jobs", value=3, remedy="ranges"):
        GridStrategy().grown(GridStrategy().plan(ranges, 3, 9), 5)


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    ranges: dict[str, ParameterRange] = {"a": IntegerParameter(1, 3), "b": CategoricalParameter(["x", "y"])}
    first, again = searcher_of(ranges), searcher_of(ranges)
    assert [first.suggest("one"), first.suggest("two")] == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}]
    first.save(str(tmp_path / "state"))
    again.restore(str(tmp_path / "state"))
    assert again.suggest("three") == first.suggest("three") == {"a": 2, "b": "x"}
