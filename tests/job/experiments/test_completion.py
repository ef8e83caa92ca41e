"""Savings and losses of completion criteria, on a small table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.completion import CRITERIA, measured, search_over, searched, summary, verdict_on
from experiments.shared.recorded_tasks import RecordedTask
from hpo.simulation import simulate
from hpo.strategies import HyperbandStrategy, Strategy
from hpo.strategies.random_strategy import RandomStrategy
from tests.support.curves import RANGES, table

TASK = RecordedTask(name="made", curves=table(400), ranges=RANGES)


@pytest.mark.parametrize("strategy", [RandomStrategy(), HyperbandStrategy(suggestions="random")])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_whole_search_tells_where_a_criterion_would_have_ended_it(strategy: Strategy, criterion: str) -> None:
    plan, ran = searched(TASK, strategy, 78, seed=1)
    verdict = verdict_on(CRITERIA[criterion], TASK, plan, ran)
    assert verdict is not None
    search = replace(search_over(plan, 1), completion=CRITERIA[criterion])
    ended = simulate(TASK.curves, search, strategy, plan, TASK.ranges)
    assert ended.stopped == verdict.reason
    counted = [trial for trial in ended.trials if trial.number <= verdict.last]
    assert [trial.value for trial in counted] == [trial.value for trial in ran[: verdict.last + 1]]


def test_a_row_a_strategy_and_criterion() -> None:
    runs = {"Random": [measured(TASK, "Random", 78, seed) for seed in (1, 2)]}
    rows = summary({"runs": runs, "criteria": [*CRITERIA]})
    assert [row[:2] for row in rows] == [("Random", name) for name in CRITERIA]
    for run in runs["Random"]:
        for found in run["criteria"].values():
            assert 0 <= found["saved"] < 1
            assert found["lost"] >= 0
