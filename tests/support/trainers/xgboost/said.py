"""XGBoost programs on rows with weights, margins, bounds and queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Assignment

RANDOM = np.random.default_rng(5)
X = RANDOM.integers(0, 9, (600, 4)).astype(np.float32)
SIGNAL = X[:, 0] - X[:, 1] + RANDOM.normal(size=600)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    y=(SIGNAL > 0).astype(np.float32),
    of_three=np.digitize(SIGNAL, [-2, 2]).astype(np.float32),
    w=np.where(X[:, 2] > 4, 5.0, 0.1).astype(np.float32),
    m0=RANDOM.normal(size=600).astype(np.float32),
    m1=RANDOM.normal(size=600).astype(np.float32),
    m2=RANDOM.normal(size=600).astype(np.float32),
    lo=np.exp(SIGNAL / 4).astype(np.float32),
    hi=np.where(X[:, 3] > 6, np.inf, np.exp(SIGNAL / 4)).astype(np.float32),
    q=np.repeat(np.arange(75) * 3 + 70_000_000, 8),
    grade=np.digitize(SIGNAL, [-3, -1, 1, 3]).astype(np.float32),
    of_query=np.repeat(RANDOM.gamma(2.0, size=75), 8).astype(np.float32),
)
BINARY = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc", "error"]}
CLASSES = {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["mlogloss"]}
AFT = {"objective": "survival:aft", "eval_metric": ["aft-nloglik", "interval-regression-accuracy"]}
NDCG = {"objective": "rank:ndcg", "eval_metric": ["ndcg", "ndcg@2"]}
BOUNDS = {"label_lower_bound": "lo", "label_upper_bound": "hi"}

Case = tuple[str | None, dict[str, Any], dict[str, Any]]
CASES: list[Case] = [
    ("y", {"weight": "w"}, BINARY),
    ("y", {"base_margin": "m0", "weight": "w"}, BINARY),
    ("of_three", {"base_margin": ["m0", "m1", "m2"]}, CLASSES),
    (None, BOUNDS, AFT),
    (None, {**BOUNDS, "weight": "w"}, AFT),
    ("grade", {"qid": "q"}, NDCG),
    ("grade", {"qid": "q", "weight": "of_query"}, NDCG),
    ("y", {"qid": "q"}, {"objective": "rank:map", "eval_metric": ["map", "rmse"]}),
    ("grade", {"qid": "q"}, {"objective": "rank:pairwise", "eval_metric": ["ndcg@3-"]}),
    ("y", {"qid": "q"}, {"objective": "binary:logistic", "eval_metric": ["auc", "pre@3", "logloss"]}),
    (None, BOUNDS, {"objective": "survival:aft", "eval_metric": ["rmse", "mae"]}),
]


def channels(target: str | None, said: dict[str, Any]) -> dict[str, Channel]:
    named = [name for of in said.values() for name in (of if isinstance(of, list) else [of])]
    frame = FRAME[[*([target] if target else []), *named, *"abcd"]]
    parts = {"train": frame, "validation": frame[96:496]}
    return {name: Channel.of(part, target=target, name=name, **said) for name, part in parts.items()}


def program(case: Case, **more: Any) -> Callable[[], Any]:
    target, said, hyperparameters = case

    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**hyperparameters, **more})
        opened = trainer.checked(channels(target, said))
        return trainer.program({name: channel.place(0) for name, channel in opened.items()})

    return make


def order(folder: Path, case: Case, **more: Any) -> Assignment:
    return assignment(hyperparameters={**case[2], **more}, stop=4, save_to=str(folder / "4.ubj"))


def matrix(case: Case, part: slice) -> xgboost.DMatrix:
    target, said, _ = case
    columns = {role: FRAME[column].to_numpy()[part] for role, column in said.items()}
    if "qid" in said and "weight" in said:
        columns["weight"] = columns["weight"][::8]  # One a query.
    return xgboost.DMatrix(FRAME[[*"abcd"]][part], FRAME[target or "lo"][part], **columns)
