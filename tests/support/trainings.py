"""Single trainings as jobs, and what has to be alike of two of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig
from rich.console import Console

from hpo import TrainingJob
from hpo.record.store import Store
from tests.support import exact_torch_job
from trainers import TorchTrainer, XGBoostTrainer, storage

ROUNDS = 20


def boosted(workers: int = 0, **hyperparameters: Any) -> XGBoostTrainer:
    """A trainer of few rounds, with a random part."""
    values = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": ROUNDS, "subsample": 0.7}
    return XGBoostTrainer(
        scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
        hyperparameters={**values, **hyperparameters},
    )


def exact(workers: int, **hyperparameters: Any) -> TorchTrainer:
    """A trainer of five epochs in float64; `kill` as `exact_torch_job.train` has it."""
    return TorchTrainer(
        exact_torch_job.train,
        scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
        hyperparameters={"lr": 0.05, "per_worker_batch_size": 64, "epochs": 5, **hyperparameters},
    )


def url(folder: Path) -> str:
    """The record in a folder."""
    return f"sqlite:///{folder}/record.db"


def training(folder: Path, trainer: Any = None, **arguments: Any) -> TrainingJob:
    """A training with its record and its models in a folder."""
    given = {
        "store": url(folder),
        "storage_path": str(folder),
        "random_seed": 7,
        "console": Console(file=io.StringIO()),
    }
    return TrainingJob(boosted() if trainer is None else trainer, **{**given, **arguments})


def outcome(folder: Path, name: str) -> dict[str, Any]:
    """Return the parts of a training that have to be equal, down to the model's bytes."""
    with Store(url(folder)) as store:
        job, (trial,), reports = store.job(name), store.trials(name), store.reports(name)
    return {
        "status": (job.status, job.reason, trial.status),
        "reports": [(report.step, report.metrics) for report in reports],
        "objective": trial.objective,
        "model": storage.read(trial.checkpoint),
    }
