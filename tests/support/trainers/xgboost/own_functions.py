"""XGBoost programs with a user's objectives and metrics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ray.train import ScalingConfig

from tests.support import own_objectives as own
from tests.support.assignments import assignment
from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Assignment

RANDOM = np.random.default_rng(13)
X = RANDOM.integers(0, 9, (300, 4)).astype(np.float32)
Y = np.exp((X[:, 0] - X[:, 1] + RANDOM.normal(size=300)) / 4).astype(np.float32)
CLASSES = np.digitize(Y, [0.6, 1.6]).astype(np.float32)
WEIGHTS = RANDOM.gamma(2.0, size=300).astype(np.float32)
HERE = ScalingConfig(num_workers=0)
PLACE = "tests.support.own_objectives"

Case = tuple[Any, dict[str, Any], dict[str, Any]]
SINGLE: Case = (
    Y,
    {"eval_metric": ["rmse", "mae"], "seed": 1},
    {"objective_function": own.squared_log, "metric_functions": [own.rmsle, own.rows]},
)
SEVERAL: Case = (
    CLASSES,
    {"num_class": 3, "disable_default_eval_metric": True},
    {"objective_function": own.softmax, "metric_functions": [own.misclassified]},
)
METRIC_ALONE: Case = (
    (Y > 1).astype(np.float32),
    {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"]},
    {"metric_functions": [own.rows, own.rmsle]},
)


def make(case: Case, label: Any = None) -> Callable[[], Any]:
    target, told, functions = case
    target = target if label is None else label

    def program() -> Any:
        trainer = XGBoostTrainer(scaling=HERE, hyperparameters=told, **functions)
        tables = {
            "train": (X[:200], target[:200], {"weight": WEIGHTS[:200]}),
            "validation": (X[200:], target[200:], {"weight": WEIGHTS[200:]}),
        }
        return trainer.program({name: Channel.of(rows, name=name).place(0) for name, rows in tables.items()})

    return program


def order(folder: Path, case: Case) -> Assignment:
    folder.mkdir(parents=True, exist_ok=True)
    return assignment(hyperparameters=case[1], stop=5, save_to=str(folder / "000005.ubj"))
