"""What a suggestion reads: the same whatever came first, on however many gangs; and it never waits for ever."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hpo.strategies.hyperband import Plan, lay_out_cutting, run_all
from hpo.strategies.openings import by_number
from hpo.strategies.searchers.history import History
from tests.support.digests import LAG
from tests.support.hpo.strategies.searchers.history import PLANS


@pytest.mark.parametrize("plan", PLANS, ids=["paper", "cutting", "small", "all", "median"])
def test_it_reads_more_and_more(plan: Plan) -> None:
    """Once everything is known, each suggestion reads what the one before it did, and all trials a lag behind it."""
    history = played(plan)
    before: list[Any] = []
    for number in range(plan.trials):
        assert history.ready(number)
        seen, unseen = history.read(number)
        assert all(each in seen for each in before)
        assert len({each.hyperparameters["n"] for each in seen}) == max(0, number - LAG + 1)
        assert [each["n"] for each in unseen] == list(range(max(0, number - LAG + 1), number))
        before = seen


def test_rungs_behind_the_first_open_a_lag_each_after_their_bracket() -> None:
    plan = lay_out_cutting(45, 1, 27)
    history = played(plan)
    first = plan.brackets[0]
    for number in range(plan.trials):
        seen, _ = history.read(number)
        highest = max((each.resource for each in seen if each.hyperparameters["n"] < first.sizes[0]), default=0)
        lags = max(0, number - first.sizes[0]) // LAG
        assert highest == (first.rungs[min(lags, len(first.rungs) - 1)] if number >= LAG else 0)


def test_it_waits_for_what_it_reads_and_for_nothing_else() -> None:
    history = History(run_all(6, 3), by_number(run_all(6, 3), 2))
    for number in range(4):
        history.begin({"n": number})
    assert [history.ready(number) for number in range(4)] == [True, True, False, False]
    history.reported(1, 3, 0.5)
    assert not history.ready(2)
    history.reported(0, 2, 0.5)  # Between two rungs.
    assert not history.ready(2)
    history.ended(0, 2, math.nan)
    assert history.ready(3)
    assert [each.value for each in history.read(3)[0]] == pytest.approx([math.nan, 0.5], nan_ok=True)


def test_a_trial_that_ends_by_itself_comes_to_no_other_value() -> None:
    history = History(run_all(3, 9), by_number(run_all(3, 9), 1))
    history.begin({"n": 0})
    history.reported(0, 4, 0.5)
    history.ended(0, 4, 0.5)
    assert [(each.resource, each.value) for each in history.read(1)[0]] == [(9, 0.5)]


def played(plan: Plan) -> History:
    """All trials of a plan, each at all rungs of its bracket."""
    history = History(plan, by_number(plan, LAG))
    for bracket in plan.brackets:
        for _ in range(bracket.sizes[0]):
            history.begin({"n": history.begun})
    for number in reversed(range(plan.trials)):
        bracket = plan.brackets[history.bracket(number)]
        for rung in bracket.rungs:
            history.reported(number, rung, float(number))
    return history
