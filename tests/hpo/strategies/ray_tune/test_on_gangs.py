"""Searchers and schedulers of other libraries, run on simulated gangs to the end of a search."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch  # noqa: F401  # GPSampler imports it when it is first asked, which takes seconds.
from optuna.samplers import CmaEsSampler, GPSampler, GridSampler, RandomSampler, TPESampler
from ray.tune.schedulers import (
    AsyncHyperBandScheduler,
    FIFOScheduler,
    HyperBandForBOHB,
    HyperBandScheduler,
    MedianStoppingRule,
)
from ray.tune.search import ConcurrencyLimiter, Repeater
from ray.tune.search.bohb import TuneBOHB
from ray.tune.search.hyperopt import HyperOptSearch
from ray.tune.search.optuna import OptunaSearch

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange, decode
from hpo.search.controller import Controller
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.registry import prepared
from hpo.strategies.strategy import Task
from tests.support.refusals import mentions
from tests.support.simulated import METRIC, drawn, simulate
from trainers.gangs.messages import Assignment

UNITS, JOBS = 27, 20
RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
    "dropout": ContinuousParameter(0.5, 0.99, "ReverseLogarithmic"),
    "depth": IntegerParameter(1, 8),
    "booster": CategoricalParameter(["gbtree", "dart"]),
    "flag": CategoricalParameter([1, True, "1"]),
    "only": IntegerParameter(3, 3),
}
ASHA = (AsyncHyperBandScheduler, {"max_t": UNITS, "grace_period": 1, "reduction_factor": 3})


def near(assignment: Assignment, step: int) -> float:
    """A learning curve towards a value that is highest where eta is 0.1 and depth 5."""
    values = assignment.hyperparameters
    best = 1 - 0.1 * math.log10(values.get("eta", 1) / 0.1) ** 2 - 0.01 * (values.get("depth", 1) - 5) ** 2
    return float(best * (1 - 0.9**step) + 0.01 * drawn(f"{assignment.trial_id}/{step}"))


def searched(
    parallel: int = 1, jobs: int = JOBS, seed: int = 7, curve: Any = near, points: Any = (), **parts: Any
) -> Controller:
    strategy = RayTuneStrategy(**parts)
    plan = strategy.plan(RANGES, jobs, UNITS)
    task = Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=seed, parallel=parallel)
    made = prepared(strategy, task)
    controller, _, _ = simulate(
        made.scheduler,
        searcher=made.searcher,
        plan=made.plan,
        parallel=parallel,
        curve=curve,
        decode=partial(decode, RANGES),
        untuned=False,
        points=points,
    )
    return controller


def trials(controller: Controller) -> list[tuple[dict[str, Any], int]]:
    return [(run.hyperparameters, run.resource) for run in controller.runs.values()]


SEARCHERS = {
    "random": None,
    "OptunaSearch": OptunaSearch,
    "HyperOptSearch": (HyperOptSearch, {"n_initial_points": 5}),
    "TuneBOHB": TuneBOHB,
    "TPESampler": TPESampler,
    "GPSampler": (GPSampler, {"n_startup_trials": 9}),
    "CmaEsSampler": (CmaEsSampler, {"n_startup_trials": 3, "warn_independent_sampling": False}),
    "RandomSampler": RandomSampler,
    "a limited one": (ConcurrencyLimiter, {"searcher": (OptunaSearch, {}), "max_concurrent": 2}),
    "a repeated one": (Repeater, {"searcher": (OptunaSearch, {}), "repeat": 2}),
}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
"""HpBandSter 0.7.4 with ConfigSpace 1.2 and statsmodels 0.15."""

SCHEDULERS = {
    "none": None,
    "FIFO": FIFOScheduler,
    "ASHA": ASHA,
    "ASHA of three brackets": (AsyncHyperBandScheduler, {**ASHA[1], "brackets": 3}),
    "median": (MedianStoppingRule, {"grace_period": 3}),
    "HyperBand": (HyperBandScheduler, {"max_t": UNITS}),
    "HyperBandForBOHB": (HyperBandForBOHB, {"max_t": UNITS}),
}


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


@pytest.mark.parametrize("scheduler", [name for name in SCHEDULERS if name != "none"])
@pytest.mark.parametrize("parallel", [1, 4])
def test_each_scheduler_searches_to_the_end(scheduler: str, parallel: int) -> None:
    searcher = TuneBOHB if scheduler == "HyperBandForBOHB" else None
    found = searched(parallel, searcher=searcher, scheduler=SCHEDULERS[scheduler])
    assert not found.stopped
    assert len(found.runs) == JOBS
    assert all(run.trial.is_finished() for run in found.runs.values())
    assert (found.trained < JOBS * UNITS) == (scheduler != "FIFO")


@pytest.mark.parametrize(
    ("searcher", "scheduler"), [pair for pair in product(SEARCHERS, SCHEDULERS) if pair != ("random", "none")]
)
def test_one_after_another_the_seed_decides(searcher: str, scheduler: str) -> None:
    parts = {"searcher": SEARCHERS[searcher], "scheduler": SCHEDULERS[scheduler]}
    first = trials(searched(jobs=9, **parts))
    assert trials(searched(jobs=9, **parts)) == first
    assert trials(searched(jobs=9, seed=8, **parts)) != first


def test_the_stock_hyperband_sees_its_brackets_full_for_any_number_at_once() -> None:
    """4 trials to the end, 6 from 9 units and 10 of 12 from 3: as in Tune where it shows the scheduler a next one."""
    assert [searched(parallel, scheduler=SCHEDULERS["HyperBand"]).trained for parallel in (1, 2, 4)] == [288] * 3


@pytest.mark.parametrize(("scheduler", "least"), [("HyperBand", 3), ("HyperBandForBOHB", 1)])
def test_where_the_stock_hyperband_waits_for_ever_the_search_ends_and_says_so(scheduler: str, least: int) -> None:
    """The last to come to a rung fails, after its bracket was halved: `is_being_processed` stays set, and others wait.

    HyperBandForBOHB does not: it looks at its brackets again where nothing trains.
    """
    beyond: set[str] = set()

    def failing(assignment: Assignment, step: int) -> float:
        if assignment.start == least:
            beyond.add(assignment.trial_id)
            if len(beyond) == 4:
                raise ValueError("no further")
        return near(assignment, step)

    found = searched(
        searcher=TuneBOHB if scheduler == "HyperBandForBOHB" else None, scheduler=SCHEDULERS[scheduler], curve=failing
    )
    assert any(run.failure for run in found.runs.values())
    assert bool(found.search_failure) == (scheduler == "HyperBand")
    if found.search_failure:
        mentions(found.search_failure, "scheduler", "3")
    assert found.best() is not None
    assert all(run.trial.is_finished() for run in found.runs.values())


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
