"""Metrics of rows that workers share: XGBoost's own values, the same to the last bit for any number of workers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from ray.train import ScalingConfig
from sklearn.metrics import roc_auc_score

from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions
from trainers import Channel, XGBoostTrainer, storage
from trainers.channels import PlacedChannel
from trainers.gangs.messages import Assignment, Segment
from trainers.xgboost.rounds.evaluation import Evaluation, Share, sum_over
from trainers.xgboost.rounds.losses import Loss, loss_of, slots_of, total_of

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


# ---- sums

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


# ---- workers


STATIC = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc", "error", "rmse"], "max_depth": 4}


def rows(labels: str) -> NDArray[np.float32]:
    return np.column_stack([LABELS[labels], FEATURES])


def made(labels: str, workers: int, **hyperparameters: Any) -> Callable[[], Any]:
    """What makes the program; every process makes its own, of the same rows."""

    def program() -> Any:
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0), hyperparameters={**STATIC, **hyperparameters, "num_round": 3}
        )
        tables = {"train": rows(labels), "validation": rows(labels)[:700], "other": rows(labels)[700:]}
        return trainer.program({name: Channel.of(table, name=name).place(0) for name, table in tables.items()})

    return program


def order(folder: Path, **hyperparameters: Any) -> Assignment:
    return assignment(hyperparameters={**STATIC, **hyperparameters}, stop=3, save_to=str(folder / "000003.ubj"))


_READ_WHOLE = PlacedChannel.read_whole


def allow_whole() -> None:
    PlacedChannel.read_whole = _READ_WHOLE  # type: ignore[method-assign]


def forbid_whole() -> None:
    def refuse(channel: PlacedChannel) -> None:
        raise AssertionError(f"a worker reads all of channel {channel.name!r}")

    PlacedChannel.read_whole = refuse  # type: ignore[method-assign]


@pytest.mark.process
@pytest.mark.parametrize(
    ("labels", "hyperparameters"),
    [
        ("binary", {}),
        ("mostly", {"tree_method": "approx"}),
        ("classes", {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["mlogloss", "merror"]}),
        ("real", {"objective": "reg:squarederror", "eval_metric": ["mae", "rmse"]}),
        ("binary", {"eval_metric": ["aucpr", "logloss"]}),
        ("classes", {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["auc", "merror"]}),
    ],
)
def test_three_workers_report_what_one_makes_of_their_model(
    gang: ProcessGang, tmp_path: Path, labels: str, hyperparameters: dict[str, Any]
) -> None:
    """And none of them reads rows of another's, but for what XGBoost has to compute."""
    static = {**STATIC, **hyperparameters}
    of_all = {"aucpr", "auc"} & set(static["eval_metric"]) - ({"auc"} if labels in ("binary", "mostly") else set())
    answers = gang.run(
        made(labels, 3, **hyperparameters),
        order(tmp_path, **hyperparameters),
        before=allow_whole if of_all else forbid_whole,
    )
    segments = [answer for [answer] in answers]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 3
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(storage.read(segments[0].checkpoint)))
    for channel, part in (("validation", slice(700)), ("other", slice(700, None))):
        target = LABELS[labels][part]
        matrix = xgboost.DMatrix(FEATURES[part], target)
        share = Share.of(matrix, target, 0, 1, sum_over(1))
        told = {name: value for name, value in static.items() if name != "eval_metric"}
        booster.set_param([*told.items(), *(("eval_metric", metric) for metric in of_all)])
        alone = Evaluation(static, {channel: share}, lambda: {channel: matrix}, sum_over(1))(booster, 2)  # noqa: B023
        reported = {name: value for name, value in segments[0].reports[-1].metrics.items() if channel in name}
        assert list(reported) == list(alone)
        for name, value in alone.items():
            left = name.rpartition(":")[2] in of_all
            assert reported[name] == (pytest.approx(value, rel=1e-12) if left else value)


@pytest.mark.process
def test_labels_of_one_class_are_found_by_workers_together(gang: ProcessGang, tmp_path: Path) -> None:
    """Each share may lack a class by chance; all of them may not."""

    def program() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=STATIC)
        train, one = rows("binary"), rows("binary")[:60]
        one[:, 0] = 1
        channels = {"train": Channel.of(train, name="train"), "validation": Channel.of(one, name="validation")}
        rules = trainer.label_rules("validation", "validation:auc")
        channels["validation"] = channels["validation"].expecting(rules)
        return trainer.program({name: channel.place(0) for name, channel in channels.items()})

    answers = gang.run(program, order(tmp_path))
    for error in answers:
        mentions(str(error), "'validation'", 1, "objective_metric_name", "validation:auc")


def test_one_round_of_a_worker_alone(tmp_path: Path) -> None:
    [segment] = serve_alone(made("binary", 1)(), order(tmp_path))
    assert isinstance(segment, Segment), segment
    assert list(segment.reports[0].metrics) == [
        f"{channel}:{name}" for channel in ("validation", "other") for name in ("logloss", "auc", "error", "rmse")
    ]
