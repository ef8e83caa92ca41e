"""Searchers and schedulers of other libraries, run on simulated gangs to the end of a search."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch  # noqa: F401  # GPSampler imports it when it is first asked, which takes seconds.
from optuna.samplers import GridSampler
from ray.tune.search.bohb import TuneBOHB

from hpo.ranges import decode
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.registry import prepared
from hpo.strategies.strategy import Task
from tests.support.hpo.strategies.ray_tune.on_gangs import (
    ASHA,
    JOBS,
    RANGES,
    SCHEDULERS,
    SEARCHERS,
    UNITS,
    near,
    searched,
    trials,
)
from tests.support.refusals import mentions
from tests.support.simulated import METRIC, simulate

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
"""HpBandSter 0.7.4 with ConfigSpace 1.2 and statsmodels 0.15."""


@pytest.mark.parametrize("searcher", [name for name in SEARCHERS if name != "random"])
@pytest.mark.parametrize("parallel", [1, 4])
def test_each_searcher_searches_to_the_end_with_asha_and_points_of_a_persons(searcher: str, parallel: int) -> None:
    found = searched(
        parallel, jobs=12, searcher=SEARCHERS[searcher], scheduler=ASHA, points=({"depth": 5}, {"depth": 6})
    )
    assert not found.stopped
    assert len(found.runs) == 12
    assert all(run.trial.is_finished() for run in found.runs.values())
    assert {run.resource for run in found.runs.values()} <= {1, 3, 9, UNITS}
    assert [found.runs[f"job-{number:03d}"].hyperparameters["depth"] for number in (0, 1)] == [5, 6]


def test_bohb_learns_what_its_scheduler_says_of_budgets() -> None:
    strategy = RayTuneStrategy(searcher=TuneBOHB, scheduler=SCHEDULERS["HyperBandForBOHB"])
    task = Task(plan=strategy.plan(RANGES, JOBS, UNITS), ranges=RANGES, metric=METRIC, mode="max", seed=7)
    made = prepared(strategy, task)
    simulate(made.scheduler, searcher=made.searcher, plan=made.plan, curve=near, decode=partial(decode, RANGES))
    told: Any = made.searcher
    assert sorted(told._searcher.bohber.configs) == [1, 3, 9, 27]


def test_a_repeated_searcher_repeats() -> None:
    values = [values for values, _ in trials(searched(searcher=SEARCHERS["a repeated one"]))]
    assert values[::2] == values[1::2]
    assert values[0] != values[2]


def test_a_sampler_that_raises_is_called_by_its_own_name() -> None:
    found = searched(searcher=(GridSampler, {"search_space": {"eta": [0.1]}}))
    mentions(found.search_failure, "searcher", "GridSampler", "job-000", "ValueError")
