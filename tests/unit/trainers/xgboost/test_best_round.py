"""Early stopping by rounds, and the best round's model: as `xgboost.train` has them, however a trial is cut up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses, refuses_each
from tests.support.trainers.xgboost.best_round import (
    PATIENCE,
    RANDOM,
    ROUNDS,
    STATIC,
    TRAIN,
    VALIDATION,
    X,
    Y,
    order,
    served,
)
from trainers import Channel, ConfigurationError, XGBoostTrainer, storage
from trainers.channels import open_channels
from trainers.gangs.messages import Report
from trainers.xgboost.parameters import maximized


def in_pieces(folder: Path, stops: list[int], **changes: Any) -> tuple[tuple[Report, ...], bytes]:
    """The reports of a trial that pauses at some rounds, and its last model."""
    reports: list[Report] = []
    checkpoint, start = None, 0
    for stop in stops:
        [segment] = served(order(folder, start=start, stop=stop, checkpoint=checkpoint, **changes))
        reports += segment.reports
        checkpoint, start = segment.checkpoint, stop
    return tuple(reports), storage.read(str(checkpoint))


def by_hand(rounds: int = ROUNDS, patience: int | None = PATIENCE, **told: Any) -> xgboost.Booster:
    maximize = told.pop("maximize", None)
    told = {"nthread": 1, **STATIC, **told}
    train = xgboost.QuantileDMatrix(X[TRAIN], Y[TRAIN])
    evals = [(xgboost.DMatrix(X[VALIDATION], Y[VALIDATION]), "validation")]
    return xgboost.train(
        told, train, rounds, evals=evals, early_stopping_rounds=patience, maximize=maximize, verbose_eval=False
    )


def measured(model: xgboost.Booster, metric: str) -> float:
    model.set_param({"eval_metric": metric})
    return float(model.eval(xgboost.DMatrix(X[VALIDATION], Y[VALIDATION])).rpartition(f"{metric}:")[2])


@pytest.mark.parametrize("metric", ["logloss", "auc", "error", "aucpr", "mape"])
def test_it_ends_where_xgboost_does(tmp_path: Path, metric: str) -> None:
    told = {"eval_metric": ["rmse", metric], "early_stopping_rounds": PATIENCE}
    [segment] = served(order(tmp_path, told=told))
    own = by_hand(eval_metric=["rmse", metric])
    assert own.num_boosted_rounds() < ROUNDS, "the test is of nothing"
    model = XGBoostTrainer().load_model(segment.checkpoint)
    assert model.attr("best_iteration") == str(own.best_iteration)
    assert float(model.attr("best_score")) == pytest.approx(own.best_score, rel=1e-6)
    rows = xgboost.DMatrix(X)
    np.testing.assert_array_equal(model.predict(rows), own.predict(rows, iteration_range=(0, own.best_iteration + 1)))
    assert [report.step for report in segment.reports] == list(range(1, ROUNDS + 1))
    values = [report.metrics[f"validation:{metric}"] for report in segment.reports]
    assert values[own.num_boosted_rounds() - 1 :] == [values[own.best_iteration]] * (
        ROUNDS - own.num_boosted_rounds() + 1
    )
    assert segment.details == {"early_stopping": {"best_round": own.best_iteration + 1}}


@pytest.mark.parametrize("stops", [[9, 27, 40], [3, 4, 5, 10, 40], [*range(1, 40, 4), 40]])
@pytest.mark.parametrize("booster", ["gbtree", "dart", "gblinear"])
def test_a_trial_that_pauses_ends_in_the_same_round(tmp_path: Path, booster: str, stops: list[int]) -> None:
    """The model of a linear booster is not the same to the last bit: threads race for it."""
    told = {"early_stopping_rounds": PATIENCE, "booster": booster}
    changes = {"told": told, "objective": "validation:auc", "mode": "max"}
    [straight] = served(order(tmp_path / "straight", **changes))
    reports, model = in_pieces(tmp_path / "pieces", stops, **changes)
    assert [report.metrics for report in reports] == [
        pytest.approx(report.metrics, rel=1e-6) for report in straight.reports
    ]
    if booster != "gblinear":
        assert model == storage.read(straight.checkpoint)


@pytest.mark.parametrize("booster", ["gbtree", "dart", "gblinear"])
@pytest.mark.parametrize(("metric", "mode"), [("auc", "max"), ("logloss", "min")])
@pytest.mark.parametrize("stops", [[40], [9, 27, 40]])
def test_the_model_is_that_of_the_round_whose_value_counts(
    tmp_path: Path, booster: str, metric: str, mode: str, stops: list[int]
) -> None:
    changes = {"told": {"booster": booster, "seed": 3}, "objective": f"validation:{metric}", "mode": mode}
    reports, _ = in_pieces(tmp_path, stops, by_best=True, **changes)
    assert [report.step for report in reports] == list(range(1, 41))
    values = [report.metrics[f"validation:{metric}"] for report in reports]
    best = (max if mode == "max" else min)(values)
    assert best != values[-1], "the test is of nothing"
    file = str(tmp_path / "000040.ubj")
    trainer = XGBoostTrainer()
    model = trainer.load_model(file)
    assert measured(model, metric) == pytest.approx(best, rel=1e-6)
    assert int(model.attr("best_iteration")) == values.index(best)
    assert not [name for name in model.attributes() if name.startswith("warmband")]
    loaded: dict[str, Any] = {}
    exec(trainer.load_code(file), loaded)
    rows = xgboost.DMatrix(X)
    np.testing.assert_array_equal(loaded["model"].predict(rows), model.predict(rows))


def test_where_the_last_value_counts_the_model_is_the_last(tmp_path: Path) -> None:
    [segment] = served(order(tmp_path, told={}, objective="validation:auc", mode="max"))
    model = XGBoostTrainer().load_model(segment.checkpoint)
    assert model.num_boosted_rounds() == ROUNDS
    assert model.attributes() == {}


def test_one_training_has_the_best_round_s_model_and_metrics(tmp_path: Path) -> None:
    told = {**STATIC, "num_round": ROUNDS, "early_stopping_rounds": np.int64(PATIENCE)}
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}), hyperparameters=told
    )
    rows = {"train": (X[TRAIN], Y[TRAIN]), "validation": (X[VALIDATION], Y[VALIDATION])}
    result = trainer.fit(rows, storage_path=str(tmp_path))
    own = by_hand()
    assert result.model().num_boosted_rounds() == own.best_iteration + 1
    assert result.metrics["validation:logloss"] == pytest.approx(own.best_score, rel=1e-6)
    assert measured(result.model(), "logloss") == pytest.approx(own.best_score, rel=1e-6)


def test_a_metric_that_is_maximised_by_order(tmp_path: Path) -> None:
    """As `xgboost.train(maximize=...)`."""
    [segment] = served(order(tmp_path, told={"early_stopping_rounds": 3, "maximize": True}))
    own = by_hand(patience=3, maximize=True)
    assert segment.details == {"early_stopping": {"best_round": own.best_iteration + 1}}


def test_a_halt_on_the_way_changes_nothing(tmp_path: Path) -> None:
    told = {"early_stopping_rounds": PATIENCE}
    [straight] = served(order(tmp_path / "straight", told=told))
    [halted] = served(order(tmp_path / "halted", told={**told, "halt_at": 2}))
    assert halted.reached < PATIENCE
    rest = order(tmp_path / "halted", told=told, start=halted.reached, checkpoint=halted.checkpoint)
    [segment] = served(rest)
    assert (*halted.reports, *segment.reports) == straight.reports


def test_a_metric_is_needed(tmp_path: Path) -> None:
    trainer = XGBoostTrainer(hyperparameters={**STATIC, "early_stopping_rounds": 3})
    with refuses(ConfigurationError, field="early_stopping_rounds", value="'train'", remedy="channel"):
        trainer.checked({"train": Channel.of((X, Y))})


def test_rounds_that_are_no_number_of_rounds() -> None:
    def given(**hyperparameters: Any) -> Callable[[], object]:
        return lambda: XGBoostTrainer(hyperparameters=hyperparameters)

    refuses_each(
        [
            *(
                (given(early_stopping_rounds=wrong), ("early_stopping_rounds", wrong, 1))
                for wrong in (0, -1, 2.5, True, "five")
            ),
            (given(maximize="auc"), ("maximize", "auc", "True", "False")),
        ],
        ConfigurationError,
    )


def test_the_other_backend_stops_no_trial() -> None:
    with refuses(ConfigurationError, field=("early_stopping_rounds", "backend"), remedy="native"):
        XGBoostTrainer(hyperparameters={"early_stopping_rounds": 3}, backend="xgboost_ray")


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("auc", True), ("ndcg@5-", True), ("map-", True), ("mape", False), ("logloss", False), ("ams@0.15", True)],
)
def test_which_end_is_better(metric: str, expected: bool) -> None:
    assert maximized(metric) == expected


@pytest.mark.parametrize("names", ["bcde", "éèàß", (20, 30, 40, 50)])
@pytest.mark.parametrize("told", [{"early_stopping_rounds": 3}, {"booster": "dart"}, {}])
def test_the_model_knows_its_categories(tmp_path: Path, names: Sequence[Any], told: dict[str, Any]) -> None:
    """A slice of XGBoost's own does not: it would take codes of another frame for its own, without a word."""
    towns = np.array([*names], object)[RANDOM.permutation(400) % 4]
    frame = pd.DataFrame({"x": X[:, 0], "town": towns})
    effect = pd.Series(towns).map(dict(zip(names, (0.0, 3.0, 1.0, 2.0), strict=True)))
    frame["y"] = (effect + RANDOM.normal(size=400) > 1.5).astype(np.float32)
    told = {**STATIC, "eval_metric": "logloss", "eta": 0.9, "max_cat_to_onehot": 1, **told}
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=told)
    opened = trainer.checked(
        open_channels(
            {
                name: Channel.of(frame[rows], target="y", categorical="town", name=name)
                for name, rows in (("train", TRAIN), ("validation", VALIDATION))
            }
        )
    )
    served_by = trainer.program({name: channel.place(0) for name, channel in opened.items()})
    [segment] = serve_alone(
        served_by, order(tmp_path, told=told, objective="validation:logloss", mode="min", by_best=True)
    )
    values = [report.metrics["validation:logloss"] for report in segment.reports]
    model = trainer.load_model(segment.checkpoint)
    assert model.num_boosted_rounds() < ROUNDS, "the test is of nothing"
    labels, turned = frame["y"][VALIDATION], frame[VALIDATION]
    found = model.predict(trainer.matrix(model, turned))
    assert np.mean(np.where(labels, -np.log(found), -np.log(1 - found))) == pytest.approx(min(values), rel=1e-5)
    loaded: dict[str, Any] = {}
    exec(trainer.load_code(segment.checkpoint), loaded)
    own = loaded["model"]
    np.testing.assert_array_equal(own.predict(trainer.matrix(own, turned)), found)
