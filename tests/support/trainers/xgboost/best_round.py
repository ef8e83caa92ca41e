"""XGBoost programs that keep the best round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from tests.support.process_gang import serve_alone
from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Assignment, Segment

RANDOM = np.random.default_rng(11)
X = RANDOM.integers(0, 12, (400, 5)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] + 9 * RANDOM.normal(size=400) > 11).astype(np.float32)
TRAIN, VALIDATION = slice(0, 260), slice(260, 400)
STATIC = {"nthread": 1, "objective": "binary:logistic", "eval_metric": ["auc", "logloss"], "eta": 0.4}
ROUNDS, PATIENCE = 40, 5


def make(**told: Any) -> Callable[[], Any]:
    def program() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**STATIC, **told})
        tables = {"train": (X[TRAIN], Y[TRAIN]), "validation": (X[VALIDATION], Y[VALIDATION])}
        return trainer.program({name: Channel.of(rows, name=name).place(0) for name, rows in tables.items()})

    return program


def order(folder: Path, **changes: Any) -> Assignment:
    told = changes.pop("told", {"early_stopping_rounds": PATIENCE})
    folder.mkdir(parents=True, exist_ok=True)
    stop = changes.pop("stop", ROUNDS)
    return assignment(hyperparameters={**STATIC, **told}, stop=stop, save_to=str(folder / f"{stop:06d}.ubj"), **changes)


def served(*orders: Assignment) -> list[Segment]:
    told = {name: value for name, value in orders[0].hyperparameters.items() if name not in (*STATIC, "halt_at")}
    segments = serve_alone(make(**told)(), *orders)
    assert all(isinstance(segment, Segment) for segment in segments), segments
    return segments  # type: ignore[return-value]  # as was looked at
