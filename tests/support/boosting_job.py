"""A job of XGBoost with all that it has: own functions, constraints, several metrics, rows on disk, two gang sizes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ray.train import ScalingConfig
from rich.console import Console

from hpo import (
    Callback,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from tests.support import gang_faults
from trainers import Channel, XGBoostTrainer

RANDOM = np.random.default_rng(3)
X = RANDOM.integers(0, 12, (400, 4)).astype(np.float32)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    y=(X[:, 0] - X[:, 1] + X[:, 2] / 2 + 6 * RANDOM.normal(size=400) > 3).astype(np.float32)
)
STATIC = {
    "eval_metric": ["auc", "error@0.4"],
    "monotone_constraints": {"a": 1, "b": -1},
    "interaction_constraints": [["a", "b"], ["c", "d", "a"]],
    "colsample_bytree": 0.7,
    "max_depth": 4,
    "early_stopping_rounds": 2,
}
OWN: dict[str, Any] = {"objective_function": gang_faults.logistic, "metric_functions": [gang_faults.wrong]}


def channels(folder: Path) -> dict[str, Channel]:
    parts = {"train": FRAME[:260], "validation": FRAME[260:]}
    for name, part in parts.items():
        part.to_parquet(folder / f"{name}.parquet", row_group_size=50)
    return {name: Channel.of(folder / f"{name}.parquet", target="y", name=name) for name in parts}


def tuner(folder: Path, callbacks: tuple[Callback, ...] = (), **own: Any) -> HyperparameterTuner:
    strategy = HyperbandStrategyConfig(max_resource=9, min_resource=1, suggestions="random")
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
            hyperparameters=STATIC,
            external_memory=True,
            **{**OWN, **own},
        ),
        "validation:wrong",
        {"eta": ContinuousParameter(0.1, 1), "num_workers": IntegerParameter(1, 2)},
        objective_type="Minimize",
        objective_value="best",
        strategy="Hyperband",
        strategy_config=StrategyConfig(strategy),
        max_jobs=5,
        max_parallel_jobs=2,
        num_to_keep=None,
        random_seed=5,
        storage_path=str(folder),
        store=f"sqlite:///{folder}/record.db",
        callbacks=callbacks,
        console=Console(file=io.StringIO()),
    )
