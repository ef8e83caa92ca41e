"""XGBoost programs for each kind of evaluation metric."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Assignment

RANDOM = np.random.default_rng(7)
FEATURES = RANDOM.normal(size=(801, 4)).astype(np.float32)
SIGNAL = FEATURES[:, 0] + FEATURES[:, 1] * FEATURES[:, 2] + 0.5 * RANDOM.normal(size=801)
LABELS = {
    "binary": (SIGNAL > 0.7).astype(np.float32),
    "mostly": (SIGNAL > -0.7).astype(np.float32),
    "chances": (1 / (1 + np.exp(-SIGNAL))).astype(np.float32),
    "real": SIGNAL.astype(np.float32),
    "positive": np.exp(SIGNAL / 2).astype(np.float32),
    "counts": np.floor(np.exp(SIGNAL / 2)).astype(np.float32),
    "classes": np.digitize(SIGNAL, [-0.5, 0.5]).astype(np.float32),
}

CASES: list[tuple[str, str, dict[str, Any]]] = [
    *[("real", metric, {}) for metric in ("rmse", "mae", "mape", "mphe")],
    ("real", "mphe", {"objective": "reg:pseudohubererror", "huber_slope": 0.3}),
    ("positive", "rmsle", {"objective": "reg:squaredlogerror"}),
    *[
        (labels, metric, {"objective": "binary:logistic"})
        for labels in ("binary", "mostly")
        for metric in ("logloss", "error", "error@0.3", "auc", "rmse")
    ],
    ("chances", "logloss", {"objective": "binary:logistic"}),
    *[("binary", metric, {"objective": "binary:hinge"}) for metric in ("error", "auc")],
    *[("binary", metric, {"objective": "binary:logitraw"}) for metric in ("logloss", "auc")],
    ("counts", "poisson-nloglik", {"objective": "count:poisson"}),
    ("positive", "gamma-nloglik", {"objective": "reg:gamma"}),
    ("positive", "gamma-deviance", {"objective": "reg:gamma"}),
    ("counts", "tweedie-nloglik@1.5", {"objective": "reg:tweedie"}),
    *[
        ("real", "quantile", {"objective": "reg:quantileerror", "quantile_alpha": alpha})
        for alpha in (0.25, [0.1, 0.5, 0.8], "[0.1, 0.5]")
    ],
    *[
        ("classes", metric, {"objective": f"multi:{kind}", "num_class": 3})
        for kind in ("softmax", "softprob")
        for metric in ("merror", "mlogloss")
    ],
]


STATIC = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc", "error", "rmse"], "max_depth": 4}


def rows(labels: str) -> NDArray[np.float32]:
    return np.column_stack([LABELS[labels], FEATURES])


def made(labels: str, workers: int, **hyperparameters: Any) -> Callable[[], Any]:
    """Return a function that makes the program; each process calls it on the same rows."""

    def program() -> Any:
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0), hyperparameters={**STATIC, **hyperparameters, "num_round": 3}
        )
        tables = {"train": rows(labels), "validation": rows(labels)[:700], "other": rows(labels)[700:]}
        return trainer.program({name: Channel.of(table, name=name).place(0) for name, table in tables.items()})

    return program


def order(folder: Path, **hyperparameters: Any) -> Assignment:
    return assignment(hyperparameters={**STATIC, **hyperparameters}, stop=3, save_to=str(folder / "000003.ubj"))
