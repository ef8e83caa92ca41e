"""Populations that do not fit their job are refused before it starts: the argument, its value and what to give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from ray.tune.schedulers import PopulationBasedTraining
from ray.tune.schedulers.pb2 import PB2
from ray.tune.search import ConcurrencyLimiter
from ray.tune.search.optuna import OptunaSearch

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.strategy import Prepared, Task
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


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ((PBT, {"perturbation_interval": math.nan}), "scheduler.perturbation_interval is nan; give a finite number"),
        (
            (PBT, {"perturbation_interval": np.float64("inf")}),
            "scheduler.perturbation_interval is .*inf.*; give a fini",
        ),
        (own(perturbation_interval=math.nan), "perturbation_interval of Pop.* is nan; give a number of units, above 0"),
        ((PBT, {"perturbation_interval": 0}), "perturbation_interval of Pop.* is 0; give a number of units, above 0"),
        ((PBT, {"perturbation_interval": -1}), "is -1; give a number of units, above 0"),
        ((PBT, {"perturbation_interval": True}), "is True; give a number of units, above 0"),
        ((PBT, {"perturbation_interval": "2"}), "is '2'; give a number of units, above 0"),
        ((PB2, {"perturbation_interval": None}), "of PB2 is None; give a number of units, above 0"),
        ((PBT, {"perturbation_interval": UNITS}), "is 9, and a trial trains 9 units.* checkpoint; give less than 9"),
        ((PBT, {"burn_in_period": 10}), "burn_in_period of Pop.* is 10, and a trial trains 9 units"),
        ((PBT, {"burn_in_period": -1}), "burn_in_period of Pop.* is -1; give a number of units, 0 or more"),
        (
            (PBT, {"hyperparam_mutations": {"etta": [0.1]}}),
            "has 'etta', which is no .*grow_policy and subsample; did y",
        ),
        ((PBT, {"hyperparam_mutations": {"eta": {"of": [0.1]}}}), "has 'eta' as {'of'.*; give values"),
        ((PBT, {"hyperparam_mutations": {"eta": []}}), r"has 'eta' as \[\]; give one value or more"),
        ((PBT, {"hyperparam_mutations": {"grow_policy": ["loss"]}}), "has 'grow_policy': .*give 'depthwise' or"),
        ((PBT, {"hyperparam_mutations": {}}), "hyperparam_mutations of Pop.* is {}, .*; leave it out, for all ranges"),
        (own(PB2, hyperparam_bounds={"etta": [0, 1]}), "hyperparam_bounds of PB2 has 'etta'.*did you mean 'eta'"),
        ((PB2, {"hyperparam_bounds": {"grow_policy": [0, 1]}}), "has 'grow_policy', whose range is .*changes numbers"),
        ((PB2, {"hyperparam_bounds": {"eta": [1, 1]}}), r"has 'eta' as \[1, 1\]; give a least and a greatest number"),
        (own(PB2, hyperparam_bounds={"eta": [0, math.nan]}), r"has 'eta' as \[0, nan\]; give a least and a greatest"),
    ],
)
def test_what_a_population_cannot_be_is_refused(scheduler: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        prepared(scheduler)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheduler": PBT, "jobs": 1}, "max_jobs is 1, and PopulationBasedTraining compares trials; give 2 or more"),
        (
            {"scheduler": PB2, "ranges": {name: RANGES[name] for name in ("booster", "grow_policy", "only")}},
            "PB2 can change none of .*; tune a hyperparameter that is a number, or give PopulationBasedTraining",
        ),
        ({"scheduler": PBT, "ranges": {"booster": RANGES["booster"]}}, "can change none of .*; tune another"),
        (
            {"scheduler": PBT, "searcher": (ConcurrencyLimiter, {"searcher": (OptunaSearch, {}), "max_concurrent": 2})},
            "max_concurrent of searcher ConcurrencyLimiter is 2, and all 4 trials of a population begin before",
        ),
    ],
)
def test_what_does_not_go_with_the_job_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        prepared(**options)


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
    with pytest.raises(ConfigurationError, match=r"has 'method': method is 'exact', .*give 'hist' or 'approx'"):
        prepared((PBT, {"hyperparam_mutations": {"method": ["hist", "exact"]}}), ranges=conditional)


LIMITED = {"searcher": (OptunaSearch, {}), "max_concurrent": 4}
