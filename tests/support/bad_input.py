"""A good job, of which tests spoil one part."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
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

STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 20}


RANGES = {"eta": ContinuousParameter(0.1, 1), "max_depth": IntegerParameter(1, 10)}


def make(workers: int = 1, static: dict[str, Any] | None = None, ranges: Any = None, **options: Any) -> Any:
    scaling = ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1})
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, **(static or {})})
    settings: dict[str, Any] = {
        "strategy": "Hyperband",
        "strategy_config": StrategyConfig(HyperbandStrategyConfig(9, 1, suggestions="random")),
        "max_jobs": 3,
        "console": Console(file=io.StringIO(), width=120),
    }
    metric = options.pop("objective_metric_name", "validation:auc")
    return HyperparameterTuner(trainer, metric, RANGES if ranges is None else ranges, **{**settings, **options})


def rows(labels: list[float] | None = None, columns: str = "zab") -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=(len(labels or range(8)), len(columns)))
    data = pd.DataFrame(values, columns=list(columns))
    data.insert(0, "label", labels if labels is not None else [0.0, 1.0] * 4)
    return data


GOOD = rows()
