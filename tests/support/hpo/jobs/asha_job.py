"""A tuner that runs ASHA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ray.train import ScalingConfig

from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    StrategyConfig,
)
from trainers import XGBoostTrainer

RANGES = {"eta": ContinuousParameter(0.01, 1.0, "Logarithmic")}


def tuner(folder: Path, *, suggestions: str = "random", console: Any = False, **options: Any) -> HyperparameterTuner:
    config = HyperbandStrategyConfig(max_resource=9, min_resource=1, suggestions=suggestions)
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc"},
        ),
        "validation:auc",
        RANGES,
        **{
            "strategy": "ASHA",
            "strategy_config": StrategyConfig(config),
            "max_jobs": 9,
            "random_seed": 3,
            "store": f"sqlite:///{folder}/store.db",
            "storage_path": str(folder),
            "console": console,
            **options,
        },
    )
