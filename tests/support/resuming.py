"""Jobs that are killed and resumed."""

from __future__ import annotations

import io
from pathlib import Path

from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.observers.callbacks import Callback
from tests.support.torch_job import train
from trainers import TorchTrainer
from trainers.datasets import load

_FOUND = load("digits")


DIGITS = {"train": _FOUND.train, "validation": _FOUND.validation}


def torch_tuner(folder: Path, callbacks: tuple[Callback, ...] = ()) -> HyperparameterTuner:
    return HyperparameterTuner(
        TorchTrainer(
            train,
            scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
            hyperparameters={"lr": 0.05, "per_worker_batch_size": 64},
        ),
        "validation:accuracy",
        {"lr": ContinuousParameter(0.01, 0.1, "Logarithmic")},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1, suggestions="random")),
        max_jobs=5,
        random_seed=5,
        storage_path=str(folder),
        store=f"sqlite:///{folder}/record.db",
        callbacks=callbacks,
        console=Console(file=io.StringIO()),
    )
