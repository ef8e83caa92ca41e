"""Populations that do not fit their job are refused before it starts: the argument, its value and what to give."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from ray.tune.schedulers import PopulationBasedTraining
from ray.tune.schedulers.pb2 import PB2
from ray.tune.search import ConcurrencyLimiter
from ray.tune.search.optuna import OptunaSearch

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.strategy import Prepared, Task
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError

PBT = PopulationBasedTraining
UNITS = 9
RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.01, 1),
    "max_depth": IntegerParameter(1, 8),
    "only": IntegerParameter(3, 3),
    "grow_policy": CategoricalParameter(["depthwise", "lossguide"]),
    "booster": CategoricalParameter(["gbtree", "dart"]),
}


def prepared(scheduler: Any, jobs: int = 4, ranges: dict[str, ParameterRange] = RANGES, **parts: Any) -> Prepared:
    strategy = RayTuneStrategy(scheduler=scheduler, **parts)
    return strategy.prepare(
        Task(
            plan=strategy.plan(ranges, jobs, UNITS),
            ranges=ranges,
            metric="m",
            mode="max",
            seed=1,
            static_names=("subsample", "num_round"),
            fixed_names=("booster", "num_round"),
        )
    )


def own(kind: Any = PBT, **options: Any) -> Any:
    """An object of a user's, which no record holds."""
    changed = {"hyperparam_mutations" if kind is PBT else "hyperparam_bounds": {"eta": [0.1, 0.2]}}
    return kind(**{"time_attr": "training_iteration", "perturbation_interval": 2, **changed, **options})


def test_what_a_population_cannot_be_is_refused() -> None:
    interval, mutations, bounds = "perturbation_interval", "hyperparam_mutations", "hyperparam_bounds"
    of_pbt = "PopulationBasedTraining"
    cases: list[tuple[Any, tuple[object, ...]]] = [
        ((PBT, {interval: math.nan}), ("scheduler.perturbation_interval", "nan", "finite")),
        ((PBT, {interval: np.float64("inf")}), ("scheduler.perturbation_interval", "inf", "finite")),
        (own(perturbation_interval=math.nan), (interval, of_pbt, "nan", "units", 0)),
        ((PBT, {interval: 0}), (interval, of_pbt, 0, "units")),
        ((PBT, {interval: -1}), (interval, of_pbt, -1, "units", 0)),
        ((PBT, {interval: True}), (interval, of_pbt, True, "units", 0)),
        ((PBT, {interval: "2"}), (interval, of_pbt, "'2'", "units", 0)),
        ((PB2, {interval: None}), (interval, "PB2", None, "units", 0)),
        ((PBT, {interval: UNITS}), (interval, of_pbt, UNITS, "checkpoint")),
        ((PBT, {"burn_in_period": 10}), ("burn_in_period", of_pbt, 10, UNITS)),
        ((PBT, {"burn_in_period": -1}), ("burn_in_period", of_pbt, -1, "units", 0)),
        ((PBT, {mutations: {"etta": [0.1]}}), (mutations, of_pbt, "etta", "grow_policy", "subsample", "eta")),
        ((PBT, {mutations: {"eta": {"of": [0.1]}}}), (mutations, of_pbt, "eta", {"of": [0.1]}, "values")),
        ((PBT, {mutations: {"eta": []}}), (mutations, of_pbt, "eta", [], "value")),
        ((PBT, {mutations: {"grow_policy": ["loss"]}}), (mutations, "grow_policy", "loss", "depthwise", "lossguide")),
        ((PBT, {mutations: {}}), (mutations, of_pbt, {}, "ranges")),
        (own(PB2, hyperparam_bounds={"etta": [0, 1]}), (bounds, "PB2", "etta", "'eta'")),
        ((PB2, {bounds: {"grow_policy": [0, 1]}}), (bounds, "PB2", "grow_policy", "numbers", of_pbt)),
        ((PB2, {bounds: {"eta": [1, 1]}}), (bounds, "PB2", "eta", [1, 1], "[low, high]")),
        (own(PB2, hyperparam_bounds={"eta": [0, math.nan]}), (bounds, "PB2", "eta", "[0, nan]", "[low, high]")),
    ]
    refuses_each(((partial(prepared, scheduler), names) for scheduler, names in cases), ConfigurationError)


def test_what_does_not_go_with_the_job_is_refused() -> None:
    numberless = {name: RANGES[name] for name in ("booster", "grow_policy", "only")}
    limited = (ConcurrencyLimiter, {"searcher": (OptunaSearch, {}), "max_concurrent": 2})
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"scheduler": PBT, "jobs": 1}, ("max_jobs", 1, "PopulationBasedTraining", 2)),
        ({"scheduler": PB2, "ranges": numberless}, ("PB2", "tuned", "number", "PopulationBasedTraining")),
        (
            {"scheduler": PBT, "ranges": {"booster": RANGES["booster"]}},
            ("PopulationBasedTraining", "tuned", "hyperparameter"),
        ),
        (
            {"scheduler": PBT, "searcher": limited},
            ("searcher", "ConcurrencyLimiter", "max_concurrent", 2, 4, "max_parallel_jobs"),
        ),
    ]
    refuses_each(((partial(prepared, **options), names) for options, names in cases), ConfigurationError)


def test_what_fits_is_taken() -> None:
    for interval in (1, 2.5, np.int64(3), np.float32(3)):
        assert prepared((PBT, {"perturbation_interval": interval})).scheduler
    assert prepared(own(perturbation_interval=np.int64(3))).scheduler
    assert prepared((PBT, {"hyperparam_mutations": {"subsample": [0.5, 0.7], "eta": [0.5, 7]}})).scheduler
    assert prepared(PBT, searcher=(ConcurrencyLimiter, LIMITED)).scheduler
    by_default: Any = prepared(PB2).scheduler
    assert by_default._hyperparam_bounds == {"eta": [0.01, 1], "max_depth": [1, 8]}


def test_a_hyperparameter_with_a_condition_is_changed_like_any_other() -> None:
    conditional: dict[str, ParameterRange] = {
        "policy": CategoricalParameter(["depthwise", "lossguide"]),
        "method": CategoricalParameter(["hist", "approx"], when={"policy": ["lossguide"]}),
    }
    by_default: Any = prepared(PBT, ranges=conditional).scheduler
    assert by_default._hyperparam_mutations["method"] == ["hist", "approx"]
    with refuses(
        ConfigurationError, field=("hyperparam_mutations", "method"), value="exact", remedy=("hist", "approx")
    ):
        prepared((PBT, {"hyperparam_mutations": {"method": ["hist", "exact"]}}), ranges=conditional)


LIMITED = {"searcher": (OptunaSearch, {}), "max_concurrent": 4}
