"""Objectives and metrics of a user's own: what `xgboost.train` makes of them, on any number of workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from tests.support import own_objectives as own
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions, refuses, refuses_each
from tests.support.trainers.xgboost.own_functions import (
    HERE,
    METRIC_ALONE,
    PLACE,
    SEVERAL,
    SINGLE,
    WEIGHTS,
    Case,
    X,
    Y,
    make,
    order,
)
from trainers import ConfigurationError, XGBoostTrainer
from trainers.errors import TrialError
from trainers.gangs.messages import Segment
from trainers.registry import code_in, trainer_from_json


@pytest.mark.parametrize("case", [SINGLE, SEVERAL])
def test_an_objective_trains_what_xgboost_does_by_hand(tmp_path: Path, case: Case) -> None:
    target, told, functions = case
    [segment] = serve_alone(make(case)(), order(tmp_path, case))
    assert isinstance(segment, Segment), segment
    train = xgboost.QuantileDMatrix(X[:200], target[:200], weight=WEIGHTS[:200])
    validation = xgboost.DMatrix(X[200:], target[200:], weight=WEIGHTS[200:])
    result: dict[str, Any] = {}
    by_hand = xgboost.train(
        {"nthread": 1, **told},
        train,
        5,
        obj=functions["objective_function"],
        evals=[(validation, "validation")],
        custom_metric=functions["metric_functions"][0],
        evals_result=result,
        verbose_eval=False,
    )
    model = XGBoostTrainer().load_model(segment.checkpoint)
    np.testing.assert_array_equal(model.predict(validation), by_hand.predict(validation))
    for name, values in result["validation"].items():
        found = [report.metrics[f"validation:{name}"] for report in segment.reports]
        assert found == pytest.approx(values, rel=1e-5), name


def test_all_metrics_are_reported_in_their_order(tmp_path: Path) -> None:
    [segment] = serve_alone(make(METRIC_ALONE)(), order(tmp_path, METRIC_ALONE))
    assert list(segment.reports[0].metrics) == [f"validation:{name}" for name in ("auc", "logloss", "rows", "PyRMSLE")]
    assert segment.reports[0].metrics["validation:rows"] == 100
    _, told, functions = METRIC_ALONE
    trainer = XGBoostTrainer(scaling=HERE, hyperparameters=told, **functions)
    assert trainer.metrics(["train", "validation"]) is None
    assert XGBoostTrainer(hyperparameters=told).metrics(["train", "v"]) == [
        "v:auc",
        "v:logloss",
        "train:auc",
        "train:logloss",
    ]


def test_early_stopping_goes_by_a_metric_of_one_s_own(tmp_path: Path) -> None:
    told = {**METRIC_ALONE[1], "early_stopping_rounds": 2}
    case = (METRIC_ALONE[0], told, {"metric_functions": [own.rows]})
    [segment] = serve_alone(make(case)(), order(tmp_path, case))
    assert segment.details == {"early_stopping": {"best_round": 1}}
    assert XGBoostTrainer().load_model(segment.checkpoint).num_boosted_rounds() == 1


WRONG = [
    ("raises", ("KeyError", "weight of the moon")),
    ("exits", ("SystemExit", "3")),
    ("nan", ("gradients", "finite", "3")),
    ("short", ("gradients", "shape", "199", "200", "margins")),
    ("one", ("ndarray", "gradients", "derivatives")),
    ("words", ("gradients", "NumPy")),
    ("unreal_gradients", ("gradients", "complex64", "NumPy")),
    ("texts_of_digits", ("gradients", "<U32", "NumPy")),
    ("beyond", ("gradients", "finite", "0")),
    ("panics", ("_PanicError", "index out of bounds")),
]


@pytest.mark.parametrize(("name", "names"), WRONG)
def test_what_an_objective_gets_wrong_is_said(tmp_path: Path, name: str, names: tuple[str, ...]) -> None:
    case = (Y, {"eval_metric": "rmse"}, {"objective_function": getattr(own, name)})
    [error] = serve_alone(make(case)(), order(tmp_path, case))
    with refuses(TrialError, field=("objective_function", f"{PLACE}:{name}", *names)):
        raise error


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("raises", ("KeyError", "weight of the moon")),
        ("nameless", ("0.5", "name", "number")),
        ("wordy", ("'much'", "'wordy'", "number")),
        ("huge", ("...", "'huge'", "number")),
        ("guarded_number", ("_NoNumber", "'guarded'", "number")),
        ("digits", ("'0.5'", "'digits'", "number")),
        ("unreal", ("1+1j", "'unreal'", "number")),
        ("nul", (r"'a\x00b'", "'cost'")),
        ("panics", ("_PanicError", "index out of bounds")),
        ("rmsle", ("'PyRMSLE'", "name")),
    ],
)
def test_what_a_metric_gets_wrong_is_said(tmp_path: Path, name: str, names: tuple[str, ...]) -> None:
    case = (Y, {"eval_metric": "rmse"}, {"metric_functions": [own.rmsle, getattr(own, name)]})
    [error] = serve_alone(make(case)(), order(tmp_path, case))
    with refuses(TrialError, field=("metric_functions", f"{PLACE}:{name}", *names)):
        raise error


def test_no_metric_of_one_s_own_stands_for_xgboost_s(tmp_path: Path) -> None:
    case = (METRIC_ALONE[0], METRIC_ALONE[1], {"metric_functions": [own.logloss]})
    [error] = serve_alone(make(case)(), order(tmp_path, case))
    with refuses(TrialError, field="metric_functions", value="'logloss'", remedy="XGBoost"):
        raise error


def test_names_are_functions_and_the_record_has_them() -> None:
    told = {"objective_function": f"{PLACE}:squared_log", "metric_functions": [f"{PLACE}:rmsle", own.rows]}
    trainer = XGBoostTrainer(hyperparameters={"eval_metric": "rmse"}, **told)  # type: ignore[arg-type]
    state = trainer.to_json()
    code = {
        "objective_function": f"{PLACE}:squared_log",
        "metric_functions[0]": f"{PLACE}:rmsle",
        "metric_functions[1]": f"{PLACE}:rows",
    }
    assert trainer.code() == code_in(state) == state["code"] == code
    assert trainer_from_json(state, allow_code=True).to_json() == state
    assert trainer.with_hyperparameters({"eta": 0.5}).to_json()["options"] == state["options"]
    mentions(trainer.probe_obstacle(), "functions")


def test_a_record_s_functions_are_not_imported_without_consent(tmp_path: Path) -> None:
    state = {
        **XGBoostTrainer(hyperparameters={"eval_metric": "rmse"}, objective_function=own.one).to_json(),
        "options": {"objective_function": "nowhere.to.be:found", "metric_functions": ["nor.this:one"]},
    }
    trainer = trainer_from_json(state)
    assert trainer.options == state["options"]
    remedy = ("allow_code=True", "--allow-code")
    with refuses(ConfigurationError, field="objective_function", value="nowhere.to.be:found", remedy=remedy):
        trainer.arguments["objective_function"](None, None)
    with refuses(ConfigurationError, field="objective_function", value="nowhere.to.be:found", remedy="module"):
        trainer_from_json(state, allow_code=True)


def test_what_is_no_function() -> None:
    def make(**told: Any) -> Callable[[], object]:
        return lambda: XGBoostTrainer(**told)

    refuses_each(
        [
            (make(objective_function="squared_log"), ("objective_function", "squared_log", "module:name")),
            (make(objective_function=f"{PLACE}:nothing"), ("objective_function", f"{PLACE}:nothing", "'nothing'")),
            (make(objective_function=f"{PLACE}:np"), ("objective_function", f"{PLACE}:np", "module", "function")),
            (make(metric_functions=f"{PLACE}:rmsle"), ("metric_functions", f"{PLACE}:rmsle", "list")),
            (make(metric_functions=[own.rmsle, 3]), ("metric_functions[1]", 3, "function")),
            (
                make(metric_functions=[own.rmsle], backend="xgboost_ray"),
                ("metric_functions", "backend", "native"),
            ),
        ],
        ConfigurationError,
    )
