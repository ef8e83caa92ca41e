"""Metrics of rows that workers share: XGBoost's own values, the same to the last bit for any number of workers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from tests.support.process_gang import serve_alone
from tests.support.trainers.xgboost.evaluation import CASES, FEATURES, LABELS, made, order
from trainers.gangs.messages import Segment
from trainers.xgboost.rounds.evaluation import Evaluation, Share, sum_over
from trainers.xgboost.rounds.losses import Loss, loss_of, slots_of, total_of


def boosted(
    labels: NDArray[np.float32], told: dict[str, Any], weights: NDArray[np.float32] | None = None
) -> tuple[xgboost.Booster, xgboost.DMatrix]:
    matrix = xgboost.QuantileDMatrix(FEATURES, labels, weight=weights)
    booster = xgboost.Booster({"eta": 0.3, "nthread": 1, "seed": 1, **told}, [matrix])
    for iteration in range(5):
        booster.update(matrix, iteration)
    return booster, matrix


def nothing() -> dict[str, Any]:
    raise AssertionError("XGBoost was to compute a metric of all rows")


@pytest.mark.parametrize(("labels", "metric", "told"), CASES)
def test_a_metric_is_xgboosts_own(labels: str, metric: str, told: dict[str, Any]) -> None:
    target = LABELS[labels]
    booster, matrix = boosted(target, {**told, "eval_metric": metric})
    share = Share.of(matrix, target, 0, 1, sum_over(1))
    found = Evaluation({**told, "eval_metric": metric}, {"v": share}, nothing, sum_over(1))(booster, 4)
    line = booster.eval_set([(matrix, "v")], 4)
    name, _, own = line.split("\t")[1].rpartition(":")
    assert found == {name.replace("v-", "v:", 1): pytest.approx(float(own), rel=1e-7, abs=1e-12)}
    if metric == "auc":
        assert list(found.values()) == [float(own)]
        assert roc_auc_score(target, booster.predict(matrix)) == pytest.approx(float(own), rel=1e-14)


@pytest.mark.parametrize(("labels", "metric", "told"), [case for case in CASES if case[1] != "auc"])
def test_a_weighted_metric_is_xgboosts_own(labels: str, metric: str, told: dict[str, Any]) -> None:
    weights = np.random.default_rng(2).gamma(1.0, size=len(FEATURES)).astype(np.float32)
    weights[::7] = 0.0
    booster, matrix = boosted(LABELS[labels], {**told, "eval_metric": metric}, weights)
    share = Share.of(matrix, LABELS[labels], 0, 1, sum_over(1), {"weight": weights})
    found = Evaluation({**told, "eval_metric": metric}, {"v": share}, nothing, sum_over(1))(booster, 4)
    own = float(booster.eval_set([(matrix, "v")], 4).rpartition(":")[2])
    assert list(found.values()) == [pytest.approx(own, rel=1e-6, abs=1e-12)]


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ("aucpr", {"objective": "binary:logistic"}),
        ("rmse", {"objective": "multi:softprob", "num_class": 3}),
        ("mlogloss", {"objective": "binary:logistic"}),
        ("mae", {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]}),
        ("ndcg", {}),
        ("tweedie-nloglik@much", {}),
    ],
)
def test_what_is_no_mean_over_rows_is_left_to_xgboost(metric: str, told: dict[str, Any]) -> None:
    assert loss_of(metric, told) is None


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=True)


@given(st.lists(FLOATS, max_size=60), st.integers(1, 5))
def test_however_rows_are_dealt_the_sum_is_the_same_and_rounded_once(values: list[float], parts: int) -> None:
    array = np.array(values, np.float32)
    dealt = sum(slots_of(array[part::parts]) for part in range(parts))
    assert total_of(dealt) == total_of(slots_of(array)) == math.fsum(map(float, array))


def test_a_mean_of_a_loss_that_is_not_finite_is_said() -> None:
    loss = Loss(of_rows=lambda labels, predictions: predictions)
    ones = np.ones(3, np.float32)
    assert loss.value(loss.summed(ones, ones)) == 1
    assert math.isnan(loss.value(loss.summed(ones, np.array([1, np.nan, 2], np.float32))))
    infinite = loss.summed(ones, np.array([1, np.inf, 2], np.float32))
    assert loss.value(infinite) == math.inf
    with np.errstate(invalid="ignore"):
        assert math.isnan(loss.value(infinite + loss.summed(ones, np.array([1, -np.inf, 2], np.float32))))


def test_one_round_of_a_worker_alone(tmp_path: Path) -> None:
    [segment] = serve_alone(made("binary", 1)(), order(tmp_path))
    assert isinstance(segment, Segment), segment
    assert list(segment.reports[0].metrics) == [
        f"{channel}:{name}" for channel in ("validation", "other") for name in ("logloss", "auc", "error", "rmse")
    ]
