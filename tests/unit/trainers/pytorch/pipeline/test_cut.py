"""Cuts of a sequence into stages."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings, strategies

from tests.support.refusals import refuses
from trainers import TrialError
from trainers.pytorch.pipeline.cut import balanced, by_hand, greatest_divisor, ranges


def most(costs: list[float], cuts: tuple[int, ...]) -> float:
    return max(sum(costs[number] for number in stage) for stage in ranges(cuts, len(costs)))


@settings(deadline=None)
@given(strategies.lists(strategies.integers(0, 20), min_size=1, max_size=8), strategies.data())
def test_no_cut_has_a_cheaper_slowest_stage(costs: list[int], data: strategies.DataObject):
    stages = data.draw(strategies.integers(1, len(costs)))
    others = [most(costs, cuts) for cuts in combinations(range(1, len(costs)), stages - 1)]
    assert most(costs, balanced(costs, stages)) == min(others)


@settings(deadline=None)
@given(strategies.lists(strategies.integers(1, 20), min_size=2, max_size=7), strategies.data())
def test_memory_is_kept_where_any_cut_keeps_it(costs: list[int], data: strategies.DataObject):
    """A stage has so much room as it is far from the end, as activations in flight take it."""
    stages = data.draw(strategies.integers(1, len(costs)))
    bytes_ = data.draw(strategies.lists(strategies.integers(1, 9), min_size=len(costs), max_size=len(costs)))
    memory = data.draw(strategies.integers(1, 40))

    def fits(stage: int, first: int, end: int) -> bool:
        return (stages - stage) * sum(bytes_[first:end]) <= memory

    possible = [
        cuts
        for cuts in combinations(range(1, len(costs)), stages - 1)
        if all(fits(number, stage.start, stage.stop) for number, stage in enumerate(ranges(cuts, len(costs))))
    ]
    if possible:
        assert most(costs, balanced(costs, stages, fits)) == min(most(costs, cuts) for cuts in possible)
    else:
        with refuses(TrialError, field=("sequence", str(len(costs))), value=stages, remedy="ModelPlan.cuts"):
            balanced(costs, stages, fits)


def test_of_cuts_that_are_as_good_the_even_one_is_taken():
    assert balanced([9, 1, 1, 1, 1, 9], 4) == (1, 3, 5)


def test_more_stages_than_members_are_refused():
    with refuses(TrialError, field=("stages", "3"), value=4, remedy="ModelPlan.sequence"):
        balanced([1, 1, 1], 4)
    with refuses(TrialError, field=("stages", "3"), value=4, remedy="ModelPlan.sequence"):
        by_hand((1, 2, 3), 3, 4)


@pytest.mark.parametrize("cuts", [(0, 2), (2, 2), (3, 2), (2, 6), (1.5, 2), (True, 2)])
def test_cuts_by_hand_are_checked(cuts):
    assert by_hand([1, 4], 6, 3) == (1, 4)
    with refuses(TrialError, field="ModelPlan.cuts", value=cuts, remedy=("1", "5")):
        by_hand(cuts, 6, 3)
    with refuses(TrialError, field=("ModelPlan.cuts", "4", "stages"), value=(1, 2, 3), remedy=("3", "2")):
        by_hand((1, 2, 3), 6, 3)


def test_micro_batches_are_the_greatest_divisor():
    assert [greatest_divisor(rows, 4) for rows in (1, 2, 3, 4, 6, 7, 8)] == [1, 2, 3, 4, 3, 1, 4]
