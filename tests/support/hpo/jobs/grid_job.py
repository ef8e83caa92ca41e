"""A tuner that trains the six configurations of a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpo import CategoricalParameter, HyperparameterTuner, IntegerParameter
from trainers import ScalingConfig, XGBoostTrainer

GRID: dict[str, Any] = {"max_depth": IntegerParameter(1, 2), "eta": CategoricalParameter([0.5, 0.1, 1.0])}


def grid(folder: Path, **options: Any) -> HyperparameterTuner:
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3},
        ),
        "validation:auc",
        GRID,
        **{"strategy": "Grid", "store": f"sqlite:///{folder}/store.db", "console": False, **options},
    )
