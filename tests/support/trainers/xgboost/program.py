"""The program of an XGBoost worker, an assignment for it, and a count of its matrices."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from tests.support.assignments import assignment
from trainers import Channel, ScalingConfig, XGBoostTrainer
from trainers.gangs.messages import Assignment

STATIC = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 3}
TABLE = np.random.default_rng(0).normal(size=(300, 4)).astype("float32")
TABLE[:, 0] = TABLE[:, 1] > 0


def program(**hyperparameters: Any) -> Any:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**STATIC, **hyperparameters})
    return trainer.program({name: Channel.of(TABLE, name=name).place(0) for name in ("train", "validation")})


def order(folder: Path, **hyperparameters: Any) -> Assignment:
    return assignment(hyperparameters={**STATIC, **hyperparameters}, stop=2, save_to=str(folder / "000002.ubj"))


def matrices() -> int:
    """Count the matrices in this process."""
    gc.collect()
    kinds = (xgboost.DMatrix, xgboost.QuantileDMatrix)
    return sum(type(held) in kinds for held in gc.get_objects())
