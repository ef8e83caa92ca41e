"""A small Hyperband job through xgboost_ray: the trials, rungs, scores, winner and model of native workers."""

from __future__ import annotations

import io
from typing import Any

import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.record.store import Store
from tests.support.boosting import table
from trainers import XGBoostTrainer

CHANNELS = {"train": table(2000, seed=0), "validation": table(400, seed=1)}
TRIALS = 2


def tune(backend: str, scaling: ScalingConfig) -> HyperparameterTuner:
    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 9, "subsample": 0.8}
    tuner = HyperparameterTuner(
        XGBoostTrainer(scaling=scaling, hyperparameters=static, backend=backend),
        "validation:auc",
        {"eta": ContinuousParameter(0.05, 1), "max_depth": IntegerParameter(1, 6)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(3, 1, suggestions="random")),
        max_jobs=TRIALS,
        max_parallel_jobs=2,
        random_seed=7,
        console=Console(file=io.StringIO()),
    )
    tuner.fit(CHANNELS, job_name=backend.replace("_", "-"))
    return tuner


def trials(tuner: HyperparameterTuner) -> list[tuple[Any, ...]]:
    """What each trial came to; a trial is named after its job."""
    assert tuner.latest_tuning_job is not None
    with Store() as store:
        rows = store.trials(tuner.latest_tuning_job.name)
    name = tuner.latest_tuning_job.name
    return sorted((row.trial_id.removeprefix(name), row.status, row.resource, row.objective) for row in rows)


def test_hyperband_through_xgboost_ray_is_hyperband_through_native_workers(ray_cluster: None) -> None:
    # One native worker in this process has the models of a gang of one: tests/process/hpo/jobs/test_in_hand.py.
    native = tune("native", ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}))
    other = tune("xgboost_ray", ScalingConfig(num_workers=1))
    assert len(trials(native)) == TRIALS + 1, "and the un-tuned run"
    for ours, theirs in zip(trials(native), trials(other), strict=True):
        assert theirs[:3] == ours[:3]
        assert theirs[3] == pytest.approx(ours[3], abs=0.002)
    assert other.best_training_job().rpartition("-")[2] == native.best_training_job().rpartition("-")[2]

    attached = HyperparameterTuner.attach("xgboost-ray").best_estimator()
    assert isinstance(attached, XGBoostTrainer)
    assert attached.backend == "xgboost_ray"
    assert attached.model().num_boosted_rounds() == attached.units
    assert attached.model().save_raw() == native.best_estimator().model().save_raw()
    seconds = other.describe()["Summary"]["worker_seconds"]
    assert seconds["starting"] > seconds["training"], "every assignment starts its actors"
