"""Whole jobs whose hyperparameters, budgets and names come out of NumPy, PyTorch and pathlib, for each trainer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray.train
import torch
from ray.train import ScalingConfig
from rich.console import Console

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    Prices,
    StrategyConfig,
    TrainingJob,
    TuningJobCompletionCriteriaConfig,
)
from hpo.record.store import Store
from tests.support import torch_job
from tests.support.driving import CHANNELS
from tests.support.ray_train_job import trainer as ray_trainer
from tests.support.refusals import refuses
from trainers import ConfigurationError, TorchTrainer, Trainer, XGBoostTrainer
from trainers.datasets import load

HERE = {"CPU": np.float64(1)}
DIGITS = load("digits")
FEW_DIGITS = {"train": DIGITS.train[:200], "validation": DIGITS.validation[:100]}


def report_score(config: dict[str, Any]) -> None:
    for epoch in range(config["num_epochs"]):
        assert type(config["lr"]) is float
        assert type(config["scale"]) is float
        ray.train.report({"score": config["lr"] * config["scale"] * epoch})


def boosted() -> Trainer:
    values = {
        "objective": np.str_("binary:logistic"),
        "eval_metric": ("auc",),
        "scale_pos_weight": np.float32(2.5),
        "max_depth": np.int64(3),
        "gamma": torch.tensor(0.5),
        "num_round": np.array(3),
    }
    return XGBoostTrainer(scaling=ScalingConfig(num_workers=0, resources_per_worker=HERE), hyperparameters=values)


def network() -> Trainer:
    return TorchTrainer(
        torch_job.train,
        scaling=ScalingConfig(num_workers=0, resources_per_worker=HERE),
        hyperparameters={"lr": np.float64(0.05), "per_worker_batch_size": np.int32(32), "epochs": np.int64(2)},
        report_timeout_s=np.float64(60),
    )


def of_ray() -> Any:
    return ray_trainer(0, report_score, lr=np.float64(0.01), num_epochs=np.int64(2), scale=np.float64(2.0))


PLAIN = (bool, int, float, str, type(None))

DOORS: dict[str, tuple[Callable[[], Any], str, dict[str, Any], Any]] = {
    "xgboost": (boosted, "validation:auc", {"eta": ContinuousParameter(np.float32(0.125), np.float64(1))}, CHANNELS),
    "pytorch": (network, "validation:accuracy", {"lr": CategoricalParameter(np.array([0.02, 0.05]))}, FEW_DIGITS),
    "ray": (of_ray, "score", {"lr": ContinuousParameter(np.float64(0.01), 1)}, None),
}


def plain_types(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(name) is str for name in value) and all(map(plain_types, value.values()))
    return (
        all(map(plain_types, value)) if isinstance(value, list) else type(value) in (bool, int, float, str, type(None))
    )


@pytest.mark.parametrize("door", DOORS)
def test_a_tuning_job_ends_with_its_summary_and_its_model_can_be_trained_again(door: str, tmp_path: Path) -> None:
    estimator, metric, ranges, channels = DOORS[door]
    said = io.StringIO()
    tuner = HyperparameterTuner(
        estimator(),
        np.str_(metric),
        {np.str_(name): bounds for name, bounds in ranges.items()},
        strategy="Random",
        max_jobs=np.int64(2),
        max_parallel_jobs=np.int8(1),
        max_runtime_in_seconds=np.array(600),
        random_seed=np.uint32(7),
        tags={np.str_("team"): np.str_("churn")},
        prices=Prices(per_worker_hour=np.float64(3)),
        max_cost=np.float32(100),
        num_to_keep=np.int64(1),
        repeats=torch.tensor(1),
        storage_path=tmp_path / "models",
        store=f"sqlite:///{tmp_path}/record.db",
        console=Console(file=said, width=120),
    )
    tuner.fit(channels, job_name=np.str_("job"))
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        row = store.job("job")
    assert row.status == "Completed"
    assert row.summary["trials"]["Completed"] == 2
    assert plain_types(tuner.estimator.to_json())
    assert json.loads(json.dumps(tuner.estimator.hyperparameters)) == tuner.estimator.hyperparameters
    assert "np." not in said.getvalue()
    assert "tensor" not in said.getvalue()
    assert plain_types(tuner.best_estimator().hyperparameters)


@pytest.mark.parametrize("door", DOORS)
def test_a_single_training_ends(door: str, tmp_path: Path) -> None:
    estimator, _, _, channels = DOORS[door]
    job = TrainingJob(
        estimator(),
        checkpoint_every=np.int64(1),
        random_seed=np.int64(7),
        storage_path=tmp_path / "models",
        store=f"sqlite:///{tmp_path}/record.db",
        console=Console(file=io.StringIO()),
    )
    job.fit(channels, np.str_("job"))
    assert job.describe()["TrainingJobStatus"] == "Completed"


def test_budgets_and_criteria_are_plain_in_the_record(tmp_path: Path) -> None:
    tuner = HyperparameterTuner(
        boosted(),
        "validation:auc",
        {"eta": ContinuousParameter(0.1, 1), "max_depth": IntegerParameter(np.int64(2), np.float64(5))},
        strategy="Hyperband",
        strategy_config=StrategyConfig(
            HyperbandStrategyConfig(
                np.int64(3), np.int64(1), reduction_factor=np.int8(3), suggestions=np.str_("random")
            )
        ),
        completion_criteria_config=TuningJobCompletionCriteriaConfig(np.int64(9), np.bool_(False), np.float64(0.9999)),
        max_jobs=np.int64(3),
        points_to_evaluate=[{np.str_("eta"): np.float32(0.25)}],
        storage_path=str(tmp_path),
        store=f"sqlite:///{tmp_path}/record.db",
        console=Console(file=io.StringIO()),
    )
    tuner.fit(CHANNELS, job_name="job")
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        spec, trials = store.job("job").spec, store.trials("job")
    assert spec["max_jobs"] == 3
    assert spec["strategy_config"]["max_resource"] == 3
    assert spec["completion_criteria"]["max_number_of_training_jobs_not_improving"] == 9
    assert next(trial for trial in trials if trial.number == 0).hyperparameters["eta"] == 0.25


@pytest.mark.parametrize(
    ("value", "where", "remedy"),
    [
        (np.array([1.0, 2.0]), "hyperparameters['a']", "tolist()"),
        (torch.ones(2), "hyperparameters['a']", "tolist()"),
        ({"b": {3: 1}}, "hyperparameters['a']['b']", "strings"),
        ({"b": [print]}, "hyperparameters['a']['b'][0]", "string"),
        ({float("nan"): 1}, "hyperparameters['a']", "strings"),
    ],
)
def test_what_has_no_plain_form_is_refused_at_each_trainer_s_door(value: Any, where: str, remedy: str) -> None:
    given = {"a": value}
    with refuses(ConfigurationError, field=where, remedy=remedy):
        XGBoostTrainer(hyperparameters=given)
    with refuses(ConfigurationError, field=where, remedy=remedy):
        TorchTrainer(torch_job.train, hyperparameters=given)
    with refuses(ConfigurationError, field=where, remedy=remedy):
        boosted().with_hyperparameters(given)
