"""A learnable table, and XGBoost trainers over it."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainers import ScalingConfig, XGBoostTrainer

STATIC = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "eta": 0.3}


def make(workers: int = 1, **hyperparameters: Any) -> XGBoostTrainer:
    return XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters={**STATIC, **hyperparameters})


def rows(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return a learnable table with noise, its target in the first column."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, 4)).astype("float32")
    target = (features[:, 0] + 0.5 * random.normal(size=count) > 0).astype("float32")
    return np.column_stack([target, features])


CHANNELS = {"train": rows(600), "validation": rows(200, seed=1)}
