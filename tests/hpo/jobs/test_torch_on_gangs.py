"""Whole tuning jobs of PyTorch trainers on real gangs, one with a worker killed: the answer of one process."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support.exact_torch_job import train
from trainers import ParameterServerTrainer, TorchTrainer
from trainers.datasets import load

pytestmark = [pytest.mark.ray, pytest.mark.smoke]

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
GANG = ScalingConfig(num_workers=2)
DIGITS = load("digits")
CHANNELS = {
    "train": (DIGITS.train[0][:480], DIGITS.train[1][:480]),
    "validation": (DIGITS.validation[0][:120], DIGITS.validation[1][:120]),
}


def tune(estimator: Any, name: str) -> HyperparameterTuner:
    tuner = HyperparameterTuner(
        estimator,
        "validation:loss",
        {"lr": ContinuousParameter(0.01, 0.5, "Logarithmic")},
        objective_type="Minimize",
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1, suggestions="random")),
        max_jobs=4,
        max_parallel_jobs=1,
        random_seed=5,
        console=Console(file=io.StringIO()),
    )
    tuner.fit(CHANNELS, job_name=name)
    return tuner


def trials(name: str) -> list[tuple[Any, ...]]:
    """What each trial came to; a trial is named after its job."""
    with Store() as store:
        rows = store.trials(name)
    return sorted((row.trial_id.removeprefix(name), row.status, row.resource, row.objective) for row in rows)


def compare(here: HyperparameterTuner, there: HyperparameterTuner, tolerance: float) -> None:
    """Both jobs found the same: trials, rungs, losses, winner, and its model."""
    one, other = trials("here"), trials("there")
    assert [row[:3] for row in other] == [row[:3] for row in one]
    assert [row[3] for row in other] == pytest.approx([row[3] for row in one], rel=0, abs=tolerance)
    assert {row[1] for row in one} == {"Completed", "Stopped"}, "some go on and some do not"
    best = [tuner.best_training_job().rpartition("-")[2] for tuner in (here, there)]
    assert best[0] == best[1]
    ours, theirs = (tuner.best_estimator().model()["model"] for tuner in (here, there))
    for parameter, value in ours.items():
        assert (value - theirs[parameter]).abs().max() <= tolerance, parameter


@pytest.mark.fault
def test_allreduce(ray_cluster: None, tmp_path: Path) -> None:
    (tmp_path / "kill").touch()
    static = {"lr": 0.1, "global_batch_size": 40}
    options: dict[str, Any] = {"metrics": ["validation:loss"]}
    here = tune(TorchTrainer(train, scaling=HERE, hyperparameters=static, **options), "here")
    killing = {**static, "kill": str(tmp_path / "kill")}
    there = tune(TorchTrainer(train, scaling=GANG, hyperparameters=killing, **options), "there")
    assert not (tmp_path / "kill").exists(), "a worker was killed"
    compare(here, there, 1e-10)


def test_parameter_servers(ray_cluster: None) -> None:
    """Where a server or a worker is killed: tests/trainers/pytorch/test_gang.py."""
    static = {"lr": 0.1, "per_worker_batch_size": 20, "mode": "sync", "num_servers": 2}
    options: dict[str, Any] = {"metrics": ["validation:loss"]}
    simulated = {**static, "num_workers": 2}
    here = tune(ParameterServerTrainer(train, scaling=HERE, hyperparameters=simulated, **options), "here")
    there = tune(ParameterServerTrainer(train, scaling=GANG, hyperparameters=static, **options), "there")
    compare(here, there, 0.0)
