"""Objectives and metrics of a user's own: what `xgboost.train` makes of them, on any number of workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support import own_objectives as own
from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.processes import printed
from tests.support.refusals import mentions, refuses, refuses_each
from trainers import Channel, ConfigurationError, XGBoostTrainer
from trainers.errors import TrialError
from trainers.gangs.messages import Assignment, Segment
from trainers.registry import code_in, trainer_from_json

RANDOM = np.random.default_rng(13)
X = RANDOM.integers(0, 9, (300, 4)).astype(np.float32)
Y = np.exp((X[:, 0] - X[:, 1] + RANDOM.normal(size=300)) / 4).astype(np.float32)
CLASSES = np.digitize(Y, [0.6, 1.6]).astype(np.float32)
WEIGHTS = RANDOM.gamma(2.0, size=300).astype(np.float32)
HERE = ScalingConfig(num_workers=0)
PLACE = "tests.support.own_objectives"

Case = tuple[Any, dict[str, Any], dict[str, Any]]
SINGLE: Case = (
    Y,
    {"eval_metric": ["rmse", "mae"], "seed": 1},
    {"objective_function": own.squared_log, "metric_functions": [own.rmsle, own.rows]},
)
SEVERAL: Case = (
    CLASSES,
    {"num_class": 3, "disable_default_eval_metric": True},
    {"objective_function": own.softmax, "metric_functions": [own.misclassified]},
)
METRIC_ALONE: Case = (
    (Y > 1).astype(np.float32),
    {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"]},
    {"metric_functions": [own.rows, own.rmsle]},
)


def make(case: Case, label: Any = None) -> Callable[[], Any]:
    target, told, functions = case
    target = target if label is None else label

    def program() -> Any:
        trainer = XGBoostTrainer(scaling=HERE, hyperparameters=told, **functions)
        tables = {
            "train": (X[:200], target[:200], {"weight": WEIGHTS[:200]}),
            "validation": (X[200:], target[200:], {"weight": WEIGHTS[200:]}),
        }
        return trainer.program({name: Channel.of(rows, name=name).place(0) for name, rows in tables.items()})

    return program


def order(folder: Path, case: Case) -> Assignment:
    folder.mkdir(parents=True, exist_ok=True)
    return assignment(hyperparameters=case[1], stop=5, save_to=str(folder / "000005.ubj"))


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


@pytest.mark.process
@pytest.mark.parametrize("case", [SINGLE, SEVERAL, METRIC_ALONE])
def test_three_workers_learn_and_report_what_one_does(gang: ProcessGang, tmp_path: Path, case: Case) -> None:
    segments = [answer for [answer] in gang.run(make(case), order(tmp_path / "three", case))]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 3
    [alone] = serve_alone(make(case)(), order(tmp_path / "one", case))
    for mine, one in zip(segments[0].reports, alone.reports, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-4)


def test_all_metrics_are_reported_in_their_order(tmp_path: Path) -> None:
    [segment] = serve_alone(make(METRIC_ALONE)(), order(tmp_path, METRIC_ALONE))
    assert list(segment.reports[0].metrics) == [f"validation:{name}" for name in ("auc", "logloss", "rows", "PyRMSLE")]
    assert segment.reports[0].metrics["validation:rows"] == 100
    _, told, functions = METRIC_ALONE
    trainer = XGBoostTrainer(scaling=HERE, hyperparameters=told, **functions)
    assert trainer.metrics(["train", "validation"]) is None
    assert XGBoostTrainer(hyperparameters=told).metrics(["train", "v"]) == ["v:auc", "v:logloss"]


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


@pytest.mark.process
def test_what_fails_on_one_worker_is_every_worker_s_error_and_the_gang_goes_on(
    gang: ProcessGang, tmp_path: Path
) -> None:
    label = Y.copy()
    label[1] = 77
    case = (Y, {"eval_metric": "rmse"}, {"objective_function": own.raises_elsewhere})
    orders = [order(tmp_path / "one", case), order(tmp_path / "two", case)]
    for answers in gang.run(make(case, label), *orders):
        for error in answers:
            mentions(str(error), f"{PLACE}:raises_elsewhere", "ValueError", "a label of 77")
    wrong = (Y, {"eval_metric": "rmse"}, {"metric_functions": [own.raises]})
    for [error] in gang.run(make(wrong), order(tmp_path / "three", wrong)):
        mentions(str(error), f"{PLACE}:raises", "KeyError")
    assert all(isinstance(answer, Segment) for [answer] in gang.run(make(SINGLE), order(tmp_path / "four", SINGLE)))


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("guarded_elsewhere", ("gradients", "RuntimeError", "use detach()", "NumPy")),
        ("silent_elsewhere", ("_Silent",)),
    ],
)
def test_no_worker_waits_for_one_whose_objective_is_odd(
    gang: ProcessGang, tmp_path: Path, name: str, names: tuple[str, ...]
) -> None:
    label = Y.copy()
    label[1] = 77
    case = (Y, {"eval_metric": "rmse"}, {"objective_function": getattr(own, name)})
    for [error] in gang.run(make(case, label), order(tmp_path, case)):
        assert isinstance(error, TrialError)
        mentions(str(error), f"{PLACE}:{name}", *names)


def test_no_metric_of_one_s_own_stands_for_xgboost_s(tmp_path: Path) -> None:
    case = (METRIC_ALONE[0], METRIC_ALONE[1], {"metric_functions": [own.logloss]})
    [error] = serve_alone(make(case)(), order(tmp_path, case))
    with refuses(TrialError, field="metric_functions", value="'logloss'", remedy="XGBoost"):
        raise error


# ---- names, records and consent


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


SCRIPT = """
    import numpy as np
    from ray import cloudpickle
    from trainers import XGBoostTrainer, ScalingConfig, Channel

    def squared(predt, dtrain):
        return predt - dtrain.get_label(), np.ones_like(predt)

    trainer = XGBoostTrainer(objective_function=squared, hyperparameters={"eval_metric": "rmse"})
    program = cloudpickle.dumps(trainer.program({}))
    del squared
    print(trainer.options, b"get_label" in program)
"""


@pytest.mark.process
def test_a_script_s_function_goes_to_workers_by_value() -> None:
    assert printed(SCRIPT) == "{'objective_function': '__main__:squared'} True\n"
