"""Channels and trainers for the tests of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.torch_job import train
from trainers import ScalingConfig, TorchTrainer, XGBoostTrainer

_STREAM = np.random.default_rng(3)
_ROWS = _STREAM.normal(size=(200, 64)).astype(np.float32)
_LABELS = (np.argmax(_ROWS[:, :10], axis=1)).astype(np.float32)
CHANNELS = {"train": (_ROWS[:150], _LABELS[:150]), "validation": (_ROWS[150:], _LABELS[150:])}
BOOSTED = {"objective": "multi:softprob", "num_class": 10, "eval_metric": "merror", "nthread": 1}


def estimators() -> dict[str, Any]:
    return {
        "boosted": XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**BOOSTED, "num_round": 4}),
        "network": TorchTrainer(
            train, scaling=ScalingConfig(num_workers=0), hyperparameters={"epochs": 3, "global_batch_size": 50}
        ),
    }
