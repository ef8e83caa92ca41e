"""Jobs with callbacks, limits and criteria."""

from __future__ import annotations

import io
from typing import Any

from ray.train import ScalingConfig
from rich.console import Console

from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from trainers import XGBoostTrainer

STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "subsample": 0.8, "colsample_bylevel": 0.7}


RANGES = {"eta": ContinuousParameter(0.01, 1), "max_depth": IntegerParameter(1, 8)}


def make(static: dict[str, Any] | None = None, **options: Any) -> tuple[HyperparameterTuner, io.StringIO]:
    """A tuner of twelve trials, and what it prints."""
    printed = io.StringIO()
    settings: dict[str, Any] = {
        "strategy": "Hyperband",
        "strategy_config": StrategyConfig(
            HyperbandStrategyConfig(max_resource=9, min_resource=1, suggestions="random")
        ),
        "max_jobs": 12,
        "random_seed": 7,
        "console": Console(file=printed, width=120),
        **options,
    }
    # More threads than one would wait for each other on a machine that is busy.
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, **(static or {})})
    return HyperparameterTuner(trainer, "validation:auc", RANGES, **settings), printed
