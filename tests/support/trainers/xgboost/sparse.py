"""XGBoost programs on sparse rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Assignment

RANDOM = np.random.default_rng(5)
ROWS = 600
X = sp.random(ROWS, 12, 0.4, "csr", np.float32, random_state=RANDOM)
X.data[:] = RANDOM.integers(0, 6, X.nnz)  # Zeros among them.
SIGNAL = X.toarray()[:, 0] - X.toarray()[:, 1] + 2 * (X[:, [2]].toarray()[:, 0] > 0) + RANDOM.normal(size=ROWS)
Y = (SIGNAL > 0.5).astype(np.float32)
W = RANDOM.gamma(2.0, size=ROWS).astype(np.float32)
BINARY = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc", "aucpr"], "max_depth": 4}

Case = tuple[dict[str, Any], dict[str, Any]]
CASES: list[Case] = [
    ({}, BINARY),
    ({"weight": W}, {**BINARY, "tree_method": "approx"}),
    ({"qid": np.repeat(np.arange(75), 8)}, {"objective": "rank:ndcg", "eval_metric": ["ndcg@3"]}),
    ({}, {"objective": "binary:logistic", "eval_metric": ["logloss"], "booster": "gblinear"}),
]
PART = slice(96, 496)


def program(case: Case, **more: Any) -> Callable[[], Any]:
    said, hyperparameters = case

    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**hyperparameters, **more})
        parts = {"train": slice(None), "validation": PART}
        opened = trainer.checked(
            {
                name: Channel.of((X[part], Y[part], {role: of[part] for role, of in said.items()}), name=name)
                for name, part in parts.items()
            }
        )
        return trainer.program({name: channel.place(0) for name, channel in opened.items()})

    return make


def order(folder: Path, case: Case, **more: Any) -> Assignment:
    return assignment(hyperparameters={**case[1], **more}, stop=4, save_to=str(folder / "4.ubj"))
