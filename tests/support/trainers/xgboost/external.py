"""XGBoost programs on rows in external memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ray.train import ScalingConfig
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

from tests.support.external_rows import FRAME, RANDOM, ROWS, SMALL, STATIC, X
from trainers import Channel, XGBoostTrainer
from trainers.channels import open_channels
from trainers.xgboost import program as programs

TOWNS = ["Åre", "Paris", "東京", "a", "b"]
CODES = np.asarray(RANDOM.integers(0, len(TOWNS), ROWS))
KINDS: dict[str, dict[str, Any]] = {
    "categories": {},
    "categories in parts": {"max_cat_to_onehot": 1, "max_cat_threshold": 3},
    "categories in memory": {},
    "queries": {"objective": "rank:ndcg", "eval_metric": ["ndcg@3", "map"]},
    "queries in memory": {"objective": "rank:ndcg", "eval_metric": ["ndcg@3"]},
    "sparse": {},
    "libsvm": {"max_bin": 512},
}


def rows_of(kind: str, folder: Path, part: str) -> Channel:
    """Rows that are more than numbers, in files and in memory: the first 2500, or the others."""
    few = slice(0, 2500) if part == "train" else slice(2500, ROWS)
    frame = FRAME[few].drop(columns="w")
    if kind.startswith("categories"):
        town = pd.Series([TOWNS[code] for code in CODES]).where(CODES + X[:, 0] < 4.5)
        frame = frame.assign(town=town[few], y=(frame["y"] + (CODES[few] == 2)).clip(0, 1))
    elif kind.startswith("queries"):
        begins = np.sort(RANDOM.permutation(np.arange(1, ROWS))[: ROWS // 9])
        query = np.searchsorted(begins, np.arange(ROWS), side="right")[few]
        frame = frame.assign(q=query)
    named = {"categorical": ["town"] if "town" in frame else None, "qid": "q" if "q" in frame else None}
    options: dict[str, Any] = {"target": "y", **named}
    if kind in ("sparse", "libsvm"):
        matrix = csr_matrix(np.where(np.abs(X[few]) > 1, X[few], 0))
        if kind == "sparse":
            return Channel.of((matrix, frame["y"].to_numpy()), name=part)
        dump_svmlight_file(matrix, frame["y"], str(folder / f"{part}.libsvm"))
        return Channel.of(folder / f"{part}.libsvm", name=part)
    if kind.endswith("in memory"):
        return Channel.of(frame, name=part, **options)
    frame.to_parquet(folder / f"{part}.parquet", row_group_size=300, index=False)
    return Channel.of(folder / f"{part}.parquet", name=part, **options)


def of_kind(kind: str, opened: dict[str, Channel], *, external: bool) -> Callable[[], Any]:
    def make() -> Any:
        programs.BLOCK_BYTES, programs.SCORED_BYTES = SMALL, 0
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={**STATIC, **KINDS[kind]},
            external_memory=external,
        )
        checked = trainer.checked(open_channels(opened))
        return trainer.program({name: channel.place(0) for name, channel in checked.items()})

    return make
