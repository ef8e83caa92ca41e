"""One model for any number of workers: rows of which XGBoost would make other bins on each number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from ray.train import ScalingConfig
from scipy.sparse import csr_matrix

from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from trainers import Channel, DataError, XGBoostTrainer
from trainers.channels import PlacedChannel, Table
from trainers.gangs.messages import Assignment, Segment
from trainers.xgboost import bins

ROWS = 12_000
"""XGBoost's sketch of 8,194 values or fewer is exact, so that bins do not depend on the number of workers."""
RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((ROWS, 5)).astype(np.float32)
X[::3, 1] = np.nan
X[:, 2] = np.exp(4 * X[:, 2])
X[:, 4] = np.where(X[:, 4] < 0.8, 0, X[:, 4])
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(
    y=(X[:, 0] - X[:, 3] * X[:, 4] + RANDOM.normal(size=ROWS) > 0).astype(np.float32),
    town=pd.Categorical.from_codes(RANDOM.integers(0, 3, ROWS), ["Oslo", "Paris", "Åre"]),
    w=RANDOM.gamma(2.0, size=ROWS).astype(np.float32),
)
STATIC = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 5, "max_bin": 64}
SPARSE = csr_matrix(np.where(np.abs(X) > 0.3, np.nan_to_num(X), 0))


def rows(kind: str, folder: Path) -> Channel:
    if kind == "files":
        path = folder / "rows.parquet"
        FRAME.drop(columns="town").to_parquet(path, row_group_size=1000, index=False)
        return Channel.of(path, target="y", weight="w", name="train")
    if kind == "frame":
        return Channel.of(FRAME.drop(columns="w"), target="y", name="train")
    return Channel.of((SPARSE, FRAME["y"].to_numpy()), name="train")


def features(kind: str) -> Any:
    return SPARSE if kind == "sparse" else FRAME.drop(columns=["y", "w", *(["town"] if kind == "files" else [])])


def program(opened: Channel, *, external: bool) -> Callable[[], Any]:
    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=STATIC, external_memory=external)
        checked = trainer.checked({"train": opened})
        return trainer.program({name: channel.place(0) for name, channel in checked.items()})

    return make


def order(folder: Path, name: str, **hyperparameters: Any) -> Assignment:
    return assignment(hyperparameters={**STATIC, **hyperparameters}, stop=6, save_to=str(folder / f"{name}.ubj"))


def limit(numbers: int) -> None:
    bins.SKETCHED = numbers


def predictions(folder: Path, name: str, kind: str) -> Any:
    booster = xgboost.Booster(model_file=folder / f"{name}.ubj")
    return booster.predict(xgboost.DMatrix(features(kind), enable_categorical=True))


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("kind", ["files", "frame", "sparse"])
@pytest.mark.parametrize("most", [1000, bins.SKETCHED])
def test_a_model_is_the_same_on_one_worker_two_and_three(
    pair: ProcessGang,
    gang: ProcessGang,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    external: bool,
    most: int,
) -> None:
    monkeypatch.setattr(bins, "SKETCHED", most)
    make = program(rows(kind, tmp_path), external=external)
    found = {1: [serve_alone(make(), order(tmp_path, "1"), order(tmp_path, "1-32", max_bin=32))]}
    for several in (pair, gang):
        orders = order(tmp_path, str(several.workers)), order(tmp_path, f"{several.workers}-32", max_bin=32)
        found[several.workers] = several.run(make, *orders, before=partial(limit, most))
    for answers in found.values():
        assert all(isinstance(segment, Segment) for answer in answers for segment in answer), answers
    for name in ("{}", "{}-32"):
        one, two, three = (predictions(tmp_path, name.format(workers), kind) for workers in (1, 2, 3))
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-6)
        np.testing.assert_allclose(three, one, rtol=0, atol=1e-6)


def test_few_rows_have_the_bins_that_xgboost_finds_of_them(pair: ProcessGang, tmp_path: Path) -> None:
    answers = pair.run(program(rows("files", tmp_path), external=False), order(tmp_path, "model"))
    assert all(isinstance(segment, Segment) for [segment] in answers), answers
    data = FRAME.drop(columns=["y", "w", "town"])
    by_hand = xgboost.train(
        {**STATIC, "nthread": 1},
        xgboost.QuantileDMatrix(data, FRAME["y"], weight=FRAME["w"], max_bin=64),
        num_boost_round=6,
    )
    mine = predictions(tmp_path, "model", "files")
    np.testing.assert_allclose(mine, by_hand.predict(xgboost.DMatrix(data)), rtol=0, atol=1e-6)


def gone() -> None:
    """Have rank 0 find no file when it reads all rows."""

    def read_whole(self: PlacedChannel) -> Table:
        raise DataError("channel 'train': rows.parquet is gone")

    PlacedChannel.read_whole = read_whole  # type: ignore[method-assign]


def test_rows_that_rank_0_cannot_read_again_are_an_error_of_all(tmp_path: Path) -> None:
    with process_gang(2, str(tmp_path)) as started:
        answers = started.run(program(rows("files", tmp_path), external=False), order(tmp_path, "2"), before=gone)
    assert ["DataError" in str(answer) and "rows.parquet is gone" in str(answer) for answer in answers] == [True, True]
