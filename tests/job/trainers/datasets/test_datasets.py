"""Named datasets: the published preparation, downloads that are whole or not there, and the synthetic stand-in."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost

from tests.support.refusals import mentions, refuses
from tests.support.trainers.datasets.datasets import CSV, ZIP, real_data
from trainers.datasets import DATASETS, bank_marketing, find, load
from trainers.errors import ConfigurationError


@real_data
def test_bank_marketing_is_prepared_as_published() -> None:
    data = load("bank-marketing")
    assert (data.title, data.synthetic) == ("UCI bank marketing", False)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [35_009, 2_060, 4_119]
    for part in (data.train, data.validation, data.test):
        assert part.columns[0] == "y"
        assert part.shape[1] == 1 + 59
        assert set(part.dtypes) == {np.dtype(np.float32)}
        assert list(part.index) == list(range(len(part)))
    assert [int(part["y"].sum()) for part in (data.train, data.validation, data.test)] == [3_919, 238, 483]


@real_data
def test_bank_marketing_equals_the_published_recipe() -> None:
    path = find("bank-marketing")
    assert path is not None
    raw = bank_marketing.read(DATASETS["bank-marketing"], path)
    raw["no_previous_contact"] = (raw["pdays"] == 999).astype(int)
    raw["not_working"] = raw["job"].isin(["student", "retired", "unemployed"]).astype(int)
    economy = ["emp.var.rate", "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"]
    rows = pd.get_dummies(raw).drop(columns=["duration", *economy]).sample(frac=1, random_state=1729)
    expected = rows.rename(columns={"y_yes": "y"}).drop(columns="y_no").iloc[: int(0.85 * len(rows))]
    train = load("bank-marketing").train
    features = [name for name in expected if name != "y"]
    assert list(train.columns) == ["y", *features]
    np.testing.assert_array_equal(train.to_numpy(), expected[["y", *features]].to_numpy(np.float32))


@real_data
def test_the_archive_alone_is_enough(tmp_path: Path) -> None:
    path = find("bank-marketing")
    assert path is not None
    with zipfile.ZipFile(tmp_path / ZIP, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, f"bank-additional/{CSV}")
    assert find("bank-marketing", tmp_path) == tmp_path / ZIP
    assert load("bank-marketing", data_dir=tmp_path).validation["y"].sum() == 238


def test_the_stand_in_has_the_published_shape() -> None:
    data = load("bank-marketing-synthetic")
    assert data.synthetic
    mentions(data.title, "synthetic")
    assert [len(part) for part in (data.train, data.validation, data.test)] == [35_009, 2_060, 4_119]
    everything = pd.concat([data.train, data.validation, data.test])
    assert everything.shape[1] == 1 + 59
    assert set(everything.dtypes) == {np.dtype(np.float32)}
    assert everything["y"].mean() == pytest.approx(0.1127, abs=1e-4)
    assert not everything.isna().any(axis=None)
    # Every level occurs.
    assert (everything.sum() > 0).all()


def test_the_stand_in_is_seeded_and_fast() -> None:
    started = time.process_time()
    raw = bank_marketing.generate(41_188, 5)
    assert time.process_time() - started < 1.0
    assert tuple(raw.columns) == bank_marketing.COLUMNS
    pd.testing.assert_frame_equal(raw, bank_marketing.generate(41_188, 5))
    one, other = load("bank-marketing-synthetic", seed=5), load("bank-marketing-synthetic", seed=6)
    assert not one.train.equals(other.train)


def test_the_stand_in_tells_good_hyperparameters_from_bad() -> None:
    data = load("bank-marketing-synthetic")
    train = xgboost.DMatrix(data.train.drop(columns="y"), data.train["y"])
    validation = xgboost.DMatrix(data.validation.drop(columns="y"), data.validation["y"])

    def curve(**hyperparameters: float) -> list[float]:
        fixed = {"objective": "binary:logistic", "eval_metric": "auc", "tree_method": "hist", "nthread": 1, "seed": 0}
        seen: dict[str, dict[str, list[float]]] = {}
        xgboost.train(
            fixed | hyperparameters, train, 100, evals=[(validation, "v")], evals_result=seen, verbose_eval=False
        )
        return seen["v"]["auc"]

    greedy, tuned = curve(eta=0.3), curve(eta=0.07, max_depth=4, min_child_weight=8, subsample=0.8)
    assert 0.76 < tuned[-1] < 0.81
    assert max(greedy) - greedy[-1] > 0.01
    assert tuned[-1] - greedy[-1] > 0.02


def test_repeat_repeats_what_is_trained_on() -> None:
    once, thrice = load("bank-marketing-synthetic"), load("bank-marketing-synthetic", repeat=3)
    for part in ("train", "validation"):
        pd.testing.assert_frame_equal(getattr(thrice, part), pd.concat([getattr(once, part)] * 3, ignore_index=True))
    pd.testing.assert_frame_equal(thrice.test, once.test)
    with refuses(ConfigurationError, field="repeat", value=0, remedy="1"):
        load("bank-marketing-synthetic", repeat=0)
