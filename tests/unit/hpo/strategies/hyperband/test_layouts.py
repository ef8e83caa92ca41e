"""Layouts of brackets: the paper's own, and laws on thousands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

from hpo.strategies.hyperband import Plan, lay_out, lay_out_cutting, run_all
from tests.support.properties import examples
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError

layouts = st.tuples(st.integers(1, 160), st.integers(1, 5), st.integers(1, 100), st.sampled_from([2, 3, 4])).filter(
    lambda layout: layout[1] <= layout[2]
)


@pytest.mark.parametrize(("max_resource", "sizes"), [(9, [9, 5, 3]), (27, [27, 12, 6, 4]), (81, [81, 34, 15, 8, 5])])
def test_a_whole_round_is_the_papers(max_resource: int, sizes: list[int]) -> None:
    """Li et al. 2018, table 1: 17, 49 and 143 trials."""
    plan = lay_out(sum(sizes), 1, max_resource)
    assert [bracket.sizes[0] for bracket in plan.brackets] == sizes
    assert [bracket.rungs[0] for bracket in plan.brackets] == [3**s for s in range(len(sizes))]


def test_thirty_jobs_use_at_most_41_percent() -> None:
    plan = lay_out(30, 1, 30)
    assert [bracket.sizes[0] for bracket in plan.brackets] == [11, 11, 5, 3]
    assert plan.resource / plan.full_resource <= 0.41


def test_with_a_model_every_bracket_stops_trials_at_the_papers_numbers() -> None:
    """Li et al. 2018, table 1, without its last bracket: 27 trials let 9, 3 and 1 through, 12 let 4 and 1."""
    plan = lay_out_cutting(90, 1, 27)
    assert [bracket.sizes for bracket in plan.brackets] == [(27, 9, 3, 1), (12, 4, 1), (6, 2)] * 2
    assert [bracket.rungs for bracket in plan.brackets[:3]] == [(1, 3, 9, 27), (3, 9, 27), (9, 27)]
    assert lay_out_cutting(12, 1, 52).brackets[0].rungs == (2, 6, 17, 52)
    assert lay_out_cutting(4, 5, 9).brackets == run_all(4, 9).brackets


@pytest.mark.parametrize("lay_out", [lay_out, lay_out_cutting])
@settings(max_examples=examples(2000), deadline=None)
@given(layouts)
def test_every_layout_is_for_exactly_max_jobs(lay_out: Callable[..., Plan], layout: tuple[int, int, int, int]) -> None:
    max_jobs, min_resource, max_resource, _ = layout
    plan = lay_out(*layout)
    assert plan.trials == max_jobs
    assert plan.resource <= plan.full_resource
    for bracket in plan.brackets:
        assert list(bracket.rungs) == sorted(set(bracket.rungs))
        assert min_resource <= bracket.rungs[0]
        assert bracket.rungs[-1] == max_resource
        assert list(bracket.sizes) == sorted(bracket.sizes, reverse=True)
        assert bracket.sizes[-1] >= 1


@pytest.mark.parametrize(
    ("arguments", "names", "value", "remedy"),
    [
        ((0, 1, 30), "max_jobs", 0, "1"),
        ((30, 0, 30), "min_resource", 0, "1"),
        ((30, 5, 3), "max_resource", 3, ("min_resource", "5")),
        ((30, 1, 30, 1), "reduction_factor", 1, "2"),
    ],
)
def test_a_wrong_layout_names_its_field(
    arguments: tuple[int, ...], names: str, value: int, remedy: str | tuple[str, ...]
) -> None:
    for brackets in (lay_out, lay_out_cutting):
        with refuses(ConfigurationError, field=names, value=value, remedy=remedy):
            brackets(*arguments)
