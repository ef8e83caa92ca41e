"""A job of population based training over boosted trees."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig
from ray.tune.schedulers import PopulationBasedTraining
from rich.console import Console

from hpo import CategoricalParameter, ContinuousParameter, HyperparameterTuner, IntegerParameter
from trainers import Trainer, XGBoostTrainer

PBT = (PopulationBasedTraining, {"perturbation_interval": 2})
RANGES: dict[str, Any] = {
    "eta": ContinuousParameter(0.01, 1, "Logarithmic"),
    "max_depth": IntegerParameter(1, 8),
    "grow_policy": CategoricalParameter(["depthwise", "lossguide"]),
    "booster": CategoricalParameter(["gbtree", "dart"]),
}


def boosting() -> Trainer:
    return XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0),
        hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 8},
    )


def tuner(
    folder: Path,
    callbacks: Any = (),
    *,
    trainer: Trainer | None = None,
    metric: str = "validation:auc",
    ranges: dict[str, Any] = RANGES,
    **options: Any,
) -> HyperparameterTuner:
    return HyperparameterTuner(
        trainer or boosting(),
        metric,
        ranges,
        storage_path=str(folder),
        callbacks=callbacks,
        store=f"sqlite:///{folder}/record.db",
        console=Console(file=io.StringIO()),
        **{"scheduler": PBT, "random_seed": 1729, "max_jobs": 6, "max_parallel_jobs": 2, **options},
    )
