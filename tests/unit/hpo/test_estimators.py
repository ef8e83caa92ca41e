"""Several estimators in one job: one budget, one best, and each trains what it trains alone."""

from __future__ import annotations

from typing import Any

import pytest
from optuna.samplers import TPESampler

from hpo import (
    ContinuousParameter,
    HyperparameterTuner,
)
from hpo.estimators import inputs_of
from hpo.job_file.models import JobSpec
from tests.support.hpo.estimators import BOOSTED, CHANNELS, estimators
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, ScalingConfig, XGBoostTrainer
from trainers.parts import ESTIMATOR
from trainers.several import SeveralTrainers


def test_inputs_by_estimator_are_taken_if_they_are_the_same() -> None:
    several = SeveralTrainers(estimators())
    assert inputs_of(several, {"boosted": CHANNELS, "network": CHANNELS}) is CHANNELS
    assert inputs_of(several, CHANNELS) is CHANNELS
    other = {**CHANNELS, "train": "other.csv"}
    with refuses(ConfigurationError, field=("inputs", "network", "boosted"), remedy="dict"):
        inputs_of(several, {"boosted": CHANNELS, "network": other})
    with refuses(ConfigurationError, field="inputs", value="bosted", remedy=("train", "boosted", "network")):
        inputs_of(several, {"bosted": CHANNELS})


def test_what_is_missing_of_an_estimator_is_named() -> None:
    objectives = dict.fromkeys(["boosted", "network"], "validation:x")

    def create(objectives: Any, ranges: Any) -> HyperparameterTuner:
        return HyperparameterTuner.create(estimators(), objectives, ranges)

    refuses_each(
        [
            (
                lambda: create({"boosted": "validation:merror"}, {"boosted": {}, "network": {}}),
                ("objective_metric_name_dict", {"boosted": "validation:merror"}, "network"),
            ),
            (lambda: create(objectives, {"boosted": {}}), ("hyperparameter_ranges_dict", {"boosted": {}}, "network")),
            (
                lambda: create(objectives, {"boosted": {}, "network": 3}),
                ("hyperparameter_ranges_dict['network']", 3, "dict"),
            ),
        ],
        ConfigurationError,
    )


def test_what_is_of_another_kind_is_named() -> None:
    def create(**changes: Any) -> HyperparameterTuner:
        given: dict[str, Any] = {
            "estimator_dict": estimators(),
            "objective_metric_name_dict": dict.fromkeys(["boosted", "network"], "validation:x"),
            "hyperparameter_ranges_dict": {"boosted": {}, "network": {}},
            **changes,
        }
        return HyperparameterTuner.create(**given, autotune=True, console=False)

    kept = "hyperparameters_to_keep_static_dict"
    refuses_each(
        [
            (lambda: create(estimator_dict=None), ("estimator_dict", None, "dict")),
            (lambda: create(estimator_dict={}), ("estimator_dict", {}, "dict")),
            (
                lambda: create(hyperparameter_ranges_dict={"boosted": {"eta": (0.1, 1)}, "network": {}}),
                ("hyperparameter_ranges['boosted.eta']", (0.1, 1), "ContinuousParameter"),
            ),
            (lambda: create(hyperparameters_to_keep_static_dict=["boosted"]), (kept, ["boosted"], "dict")),
            (
                lambda: create(hyperparameters_to_keep_static_dict={"boosted": "eta"}),
                (f"{kept}['boosted']", "'eta'", "list"),
            ),
            (
                lambda: create(hyperparameters_to_keep_static_dict={"boosted": None}),
                (f"{kept}['boosted']", None, "list"),
            ),
        ],
        ConfigurationError,
    )


def test_a_job_file_has_several_trainers() -> None:
    trainer = {"type": "xgboost", "num_workers": 0, "hyperparameters": {**BOOSTED, "num_round": 3}}
    spec = JobSpec.model_validate(
        {
            "data": {"dataset": "bank-marketing-synthetic"},
            "trainer": {"type": "several", "trainers": {"deep": trainer, "flat": trainer}},
            "tuning": {
                "objective_metric_name": "validation:merror",
                "objective_type": "Minimize",
                "ranges": {"deep.max_depth": {"type": "integer", "min": 4, "max": 9}},
            },
        }
    )
    made = spec.arguments()
    assert isinstance(made["estimator"], SeveralTrainers)
    assert set(made["hyperparameter_ranges"]) == {ESTIMATOR, "deep.max_depth"}


@pytest.mark.parametrize("options", [{"autotune": True}, {"strategy": "Random"}, {"searcher": TPESampler}])
def test_an_estimator_that_says_no_length_is_named(options: dict[str, Any]) -> None:
    here = ScalingConfig(num_workers=0)
    without = {"boosted": XGBoostTrainer(scaling=here, hyperparameters=BOOSTED), "network": estimators()["network"]}
    with refuses(ConfigurationError, field="boosted.num_round", remedy="num_round") as raised:
        HyperparameterTuner.create(
            without,
            {"boosted": "validation:merror", "network": "validation:accuracy"},
            {"boosted": {}, "network": {"lr": ContinuousParameter(0.001, 1)}},
            **options,
        )
    assert "network.epochs" not in str(raised.value), "it is given"


def test_autotune_chooses_ranges_of_each() -> None:
    boosted = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**BOOSTED, "num_round": 40})
    job = HyperparameterTuner.create(
        {"deep": boosted, "flat": boosted},
        dict.fromkeys(["deep", "flat"], "validation:merror"),
        {"deep": {"eta": ContinuousParameter(0.1, 0.2)}, "flat": {}},
        {"flat": ["num_class"]},
        autotune=True,
        console=False,
    )
    ranges = job.settings.ranges
    assert ranges["deep.eta"] == ContinuousParameter(0.1, 0.2, when={ESTIMATOR: ["deep"]})
    assert ranges["flat.max_depth"].when == {ESTIMATOR: ["flat"]}
    with refuses(ConfigurationError, field="hyperparameters_to_keep_static_dict", value="flt", remedy=("deep", "flat")):
        HyperparameterTuner.create(
            {"deep": boosted, "flat": boosted},
            dict.fromkeys(["deep", "flat"], "validation:merror"),
            {"deep": {}, "flat": {}},
            {"flt": ["eta"]},
            autotune=True,
        )
