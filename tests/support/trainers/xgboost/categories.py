"""XGBoost programs on categories, and the files of their rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from trainers import Channel, XGBoostTrainer, storage
from trainers.channels import open_channels
from trainers.gangs.messages import Assignment

RANDOM = np.random.default_rng(11)
ROWS, STEPS = 600, 4
PLAIN = [f"{letter}{number}" for number in range(4) for letter in "abc"]
FOREIGN = ["Åre", "Ærø", "Łódź", "Malmö", "Örebro", "Paris", "東京", "été"]
CODES = RANDOM.integers(0, len(PLAIN), ROWS)
X = RANDOM.integers(0, 9, (ROWS, 2)).astype(np.float32)
X[::7, 1] = np.nan
EFFECTS = RANDOM.permutation(len(PLAIN))
SIGNAL = EFFECTS[CODES] / 4 + X[:, 0] / 9 + RANDOM.normal(size=ROWS) / 4
ONE_HOT = {"max_cat_to_onehot": 99}
PARTS = {"max_cat_to_onehot": 1, "max_cat_threshold": 5}
TOLD = {"objective": "reg:squarederror", "eval_metric": ["rmse", "mae"], "eta": 0.7, "max_depth": 4}


def rows(names: list[str]) -> pd.DataFrame:
    town = pd.Series([names[code % len(names)] for code in CODES]).where(RANDOM.random(ROWS) > 0.05)
    return pd.DataFrame({"y": SIGNAL.astype(np.float32), "x": X[:, 0], "town": town, "z": X[:, 1]})


DATA = {"plain": rows(PLAIN), "foreign": rows(FOREIGN)}


def written(folder: Path, kind: str, names: str) -> None:
    """A file for each category: none has two."""
    folder.mkdir(exist_ok=True)
    for number, (_, part) in enumerate(DATA[names].groupby("town", dropna=False)):
        path = folder / f"{number}.{kind}"
        if kind == "csv":
            part.to_csv(path, index=False)
        elif kind == "parquet":
            part.to_parquet(path, row_group_size=20)


def channels(folder: Path, kind: str, names: str) -> dict[str, Channel]:
    sources = {"train": DATA[names] if kind == "memory" else str(folder), "validation": DATA[names][100:300]}
    return {name: Channel.of(source, name=name, categorical=["town"]) for name, source in sources.items()}


def program(folder: Path, kind: str, names: str, **more: Any) -> Callable[[], Any]:
    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**TOLD, **more})
        opened = trainer.checked(open_channels(channels(folder, kind, names)))
        return trainer.program({name: channel.place(0) for name, channel in opened.items()})

    return make


def order(folder: Path, **more: Any) -> Assignment:
    return assignment(hyperparameters={**TOLD, **more}, stop=STEPS, save_to=str(folder / "4.ubj"))


def predicted(checkpoint: str, features: Any) -> Any:
    model = xgboost.Booster({"nthread": 1}, model_file=bytearray(storage.read(checkpoint)))
    return model.predict(xgboost.DMatrix(features, enable_categorical=True))


def as_category(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    return frame[["x", "town", "z"]].assign(town=pd.Categorical(frame["town"], names))
