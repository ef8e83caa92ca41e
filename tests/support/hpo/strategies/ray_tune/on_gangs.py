"""Schedulers and searchers of Ray Tune on simulated gangs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch  # noqa: F401  # GPSampler imports it when it is first asked, which takes seconds.
from optuna.samplers import CmaEsSampler, GPSampler, RandomSampler, TPESampler
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


SCHEDULERS = {
    "none": None,
    "FIFO": FIFOScheduler,
    "ASHA": ASHA,
    "ASHA of three brackets": (AsyncHyperBandScheduler, {**ASHA[1], "brackets": 3}),
    "median": (MedianStoppingRule, {"grace_period": 3}),
    "HyperBand": (HyperBandScheduler, {"max_t": UNITS}),
    "HyperBandForBOHB": (HyperBandForBOHB, {"max_t": UNITS}),
}
