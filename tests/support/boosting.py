"""A small boosting job: rows, ranges and a tuner of one metric."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas
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

STATIC = {
    "objective": "binary:logistic",
    "eval_metric": "auc",
    "num_round": 150,
    "eta": 0.3,
    "colsample_bylevel": 0.5,
    "colsample_bytree": 0.8,
}


RANGES = {
    "num_round": IntegerParameter(100, 200),
    "eta": ContinuousParameter(0, 1),
    "min_child_weight": ContinuousParameter(1, 10),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(1, 10),
    "colsample_bylevel": ContinuousParameter(0, 1),
    "colsample_bytree": ContinuousParameter(0, 1),
}


def table(rows: int, seed: int) -> pandas.DataFrame:
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 6))
    target = features[:, 0] + features[:, 1] * features[:, 2] + 1.5 * random.normal(size=rows) > 0
    frame = pandas.DataFrame(features, columns=[f"f{number}" for number in range(6)])
    frame.insert(0, "y", target.astype("float32"))
    return frame


# Few values a column, as in the bank data.
CHANNELS = {"train": table(2000, 0).round(1), "validation": table(500, 1).round(1)}


def make(workers: int = 3, **options: Any) -> HyperparameterTuner:
    # In this process too: more threads would wait for each other on a machine that is busy.
    scaling = ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1})
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters=STATIC)
    settings: dict[str, Any] = {
        "max_jobs": 30,
        "strategy": "Hyperband",
        "early_stopping_type": "Off",
        "random_seed": 1729,
        "strategy_config": StrategyConfig(
            HyperbandStrategyConfig(max_resource=30, min_resource=1, suggestions="random")
        ),
        "console": Console(file=io.StringIO(), width=120),
    }
    return HyperparameterTuner(trainer, "validation:auc", RANGES, **{**settings, **options})
