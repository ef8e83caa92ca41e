"""Rows that XGBoost learns from disk, a small block at a time, and what serves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Assignment
from trainers.xgboost import program as programs

RANDOM = np.random.default_rng(5)
ROWS = 3000
X = RANDOM.normal(size=(ROWS, 4)).astype(np.float32)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    y=(X[:, 0] - X[:, 1] * X[:, 2] + RANDOM.normal(size=ROWS) > 0).astype(np.float32),
    w=RANDOM.gamma(2.0, size=ROWS).astype(np.float32),
)
FRAME.loc[::7, "c"] = np.nan
STATIC = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss", "aucpr"], "max_depth": 4}
SMALL = 4000
"""Bytes of a block: 250 rows."""


def channels(folder: Path, **said: Any) -> dict[str, Channel]:
    files = {"train": "train.parquet", "validation": "validation.csv"}
    return {name: Channel.of(folder / file, target="y", name=name, **said) for name, file in files.items()}


def program(folder: Path, *, external: bool = True, weight: str = "w", **hyperparameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        programs.BLOCK_BYTES, programs.SCORED_BYTES = SMALL, 0
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={**STATIC, **hyperparameters},
            external_memory=external,
        )
        opened = trainer.checked(channels(folder, weight=weight))
        return trainer.program({name: channel.place(0) for name, channel in opened.items()})

    return make


def order(folder: Path, **hyperparameters: Any) -> Assignment:
    name = "-".join(f"{value}" for value in hyperparameters.values())
    return assignment(hyperparameters={**STATIC, **hyperparameters}, stop=4, save_to=str(folder / f"{name}.ubj"))
