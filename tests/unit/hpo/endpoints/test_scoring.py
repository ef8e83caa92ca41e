"""Scorers: rows are predicted as the model predicts them by hand, and wrong rows are told by row and column."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from torch import nn

from hpo.endpoints.scoring import BoosterScorer, TensorScorer, scorer_of
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, DataError, TorchTrainer, XGBoostTrainer
from trainers.xgboost.booster import note_preparation

RANDOM = np.random.default_rng(3)
ROWS = 200
FRAME = pd.DataFrame(RANDOM.normal(size=(ROWS, 2)).astype(np.float32), columns=["a", "b"])
TOWNS = pd.Categorical.from_codes(RANDOM.integers(0, 3, ROWS), ["Bern", "Lodz", "Oslo"])
Y = (FRAME["a"] + TOWNS.codes > 1).astype(np.float32)


def booster(rows: Any, **parameters: Any) -> xgboost.Booster:
    matrix = xgboost.DMatrix(rows, Y if not parameters else TOWNS.codes, enable_categorical=True)
    return xgboost.train({"objective": "binary:logistic", "nthread": 1, **parameters}, matrix, 4)


def scorer(model: xgboost.Booster) -> BoosterScorer:
    return pickle.loads(pickle.dumps(BoosterScorer(raw=bytes(model.save_raw("ubj")))))


def test_columns_are_found_by_their_names_and_others_left_alone() -> None:
    model = booster(FRAME)
    rows = FRAME.assign(y=Y)[["y", "b", "a"]]
    by_name = scorer(model)
    np.testing.assert_array_equal(by_name.predict(by_name.checked(rows)), model.predict(xgboost.DMatrix(FRAME)))
    by_place = pd.DataFrame(FRAME.to_numpy())
    np.testing.assert_array_equal(by_name.predict(by_name.checked(by_place)), model.predict(xgboost.DMatrix(FRAME)))


def test_a_model_without_names_takes_all_columns() -> None:
    model = booster(FRAME.to_numpy())
    made = scorer(model)
    np.testing.assert_array_equal(made.predict(made.checked(FRAME)), model.predict(xgboost.DMatrix(FRAME.to_numpy())))
    with refuses(DataError, field="columns", value=3, remedy=("2", "target")):
        made.checked(FRAME.assign(y=1.0))


def test_categories_are_known_by_their_names_and_unknown_ones_missing() -> None:
    model = booster(FRAME.assign(town=TOWNS))
    made = scorer(model)
    texts = FRAME.assign(town=TOWNS.astype(object))
    np.testing.assert_array_equal(
        made.predict(made.checked(texts)),
        model.predict(xgboost.DMatrix(FRAME.assign(town=TOWNS), enable_categorical=True)),
    )
    unknown = made.predict(made.checked(texts.assign(town="Paris")))
    np.testing.assert_array_equal(unknown, made.predict(made.checked(texts.assign(town=None))))


def test_numbers_are_no_categories_of_text() -> None:
    made = scorer(booster(FRAME.assign(town=pd.Categorical.from_codes(TOWNS.codes, ["01", "02", "03"]))))
    with refuses(DataError, field="town", value=2, remedy="text"):
        made.checked(FRAME.assign(town=2))
    missing = made.predict(made.checked(FRAME.assign(town=np.nan)))
    np.testing.assert_array_equal(missing, made.predict(made.checked(FRAME.assign(town="2"))))


@pytest.mark.parametrize("written", ["{}", "{}.0", "0{}"])
def test_categories_that_are_numbers_are_known_as_text_too(written: str) -> None:
    numbers = TOWNS.codes.astype(np.int64) + 10**9
    made = scorer(booster(FRAME.assign(town=pd.Categorical(numbers))))
    texts = [written.format(number) for number in numbers]
    np.testing.assert_array_equal(
        made.predict(made.checked(FRAME.assign(town=texts))), made.predict(made.checked(FRAME.assign(town=numbers)))
    )


def test_several_outputs_have_a_column_each() -> None:
    made = scorer(booster(FRAME, objective="multi:softprob", num_class=3))
    assert made.predict(made.checked(FRAME)).shape == (ROWS, 3)


def test_wrong_rows_are_told() -> None:
    made = scorer(booster(FRAME))
    endless = FRAME.astype(str).assign(b="-inf")
    text = FRAME.astype(object).assign(a=lambda f: f["a"].where(f.index != 7, "x"))
    refuses_each(
        [
            (lambda: made.checked(FRAME[["a"]]), ("'b'",)),
            (lambda: made.checked(text), ("row", 8, "'a'", "'x'")),
            (lambda: made.checked(pd.DataFrame([[1.0]])), ("column", 1, 2)),
            (lambda: made.checked(FRAME.assign(a=1e300)), ("row", 1, "'a'", 1e300, "XGBoost", "finite")),
            (
                lambda: made.checked(endless),
                ("row", 1, "'b'", "'-inf'", "XGBoost", "finite"),
            ),
            (lambda: made.checked(FRAME[["a", "b", "a"]]), ("column", "'a'")),
        ],
        DataError,
    )


def test_missing_values_are_missing() -> None:
    model = booster(FRAME)
    made = scorer(model)
    holes = FRAME.astype(object).where(FRAME["a"] > 0, None)
    expected = model.predict(xgboost.DMatrix(FRAME.where(FRAME["a"] > 0, np.nan)))
    np.testing.assert_array_equal(made.predict(made.checked(holes)), expected)


def linear(state: dict[str, Any]) -> nn.Module:
    model = nn.Linear(2, 1)
    model.load_state_dict(state)
    return model


def test_a_users_function_makes_the_model_of_a_checkpoint() -> None:
    with torch.random.fork_rng():
        model = nn.Linear(2, 1)
    made: TensorScorer = pickle.loads(pickle.dumps(TensorScorer(state=model.state_dict(), model_fn=linear)))
    found = made.predict(made.checked(FRAME))
    np.testing.assert_allclose(found, model(torch.from_numpy(FRAME.to_numpy())).detach().numpy())


@pytest.mark.parametrize(
    ("model_fn", "names"),
    [(lambda state: 3, ("model_fn", "int")), ("tests.nothing:here", ("tests.nothing:here",))],
)
def test_a_function_that_makes_no_model_is_told(model_fn: Any, names: tuple[str, ...]) -> None:
    made = TensorScorer(state={}, model_fn=model_fn)
    with refuses(ConfigurationError, field=names):
        made.predict(made.checked(FRAME))


def test_a_model_that_gives_too_few_is_told() -> None:
    made = TensorScorer(state={}, model_fn=lambda state: lambda rows: rows[:3])
    with refuses(DataError, field="predictions", value=3, remedy="200"):
        made.predict(made.checked(FRAME))


def loop(context: Any) -> None:
    raise AssertionError("nothing trains")


def test_what_has_no_model_is_told() -> None:
    with refuses(ConfigurationError, field="model", remedy="fit()"):
        scorer_of(XGBoostTrainer(hyperparameters={"objective": "reg:squarederror", "num_round": 1}))
    with refuses(ConfigurationError, field="model_fn", value="XGBoost"):
        scorer_of(XGBoostTrainer(hyperparameters={"num_round": 1}), linear)
    with refuses(ConfigurationError, field="model_fn", value="TorchTrainer", remedy="'module:name'"):
        scorer_of(TorchTrainer(loop, hyperparameters={"epochs": 1}))


def test_a_model_without_names_takes_columns_by_their_places() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(50, 3)).astype(np.float32)
    matrix = xgboost.DMatrix(values, (values[:, 0] > 0).astype(float))
    booster = xgboost.train({"objective": "binary:logistic"}, matrix, 2)
    scorer = BoosterScorer(raw=bytes(booster.save_raw("ubj")))
    checked = scorer.checked(pd.DataFrame(values))
    assert checked.shape == (50, 3)
    np.testing.assert_allclose(scorer.predict(checked), booster.predict(xgboost.DMatrix(values)), rtol=1e-6)


def test_cells_of_text_are_numbers_and_truth_as_tables_write_them() -> None:
    model = booster(FRAME.assign(b=FRAME["b"] > 0))
    made = scorer(model)
    cells = pd.DataFrame({"a": FRAME["a"].map("{!r}".format), "b": (FRAME["b"] > 0).map(str)}).astype("str")
    expected = model.predict(xgboost.DMatrix(FRAME.assign(b=FRAME["b"] > 0)))
    np.testing.assert_array_equal(made.predict(made.checked(cells)), expected)
    padded = cells.assign(a=" " + cells["a"], b=cells["b"].str.lower())
    np.testing.assert_array_equal(made.predict(made.checked(padded)), expected)


def test_a_users_model_is_given_each_column_once() -> None:
    with refuses(DataError, field=("column", "'a'")):
        TensorScorer(state={}, model_fn=linear).checked(FRAME[["a", "a"]])


# ---- rows that were prepared


def prepared(objective: str, labels: Any, classes: list[str], **parameters: Any) -> BoosterScorer:
    """A model of a date and a number whose sentinel is -999."""
    days = FRAME.assign(since=np.arange(ROWS, dtype=np.float32))[["since", "a"]]
    matrix = xgboost.DMatrix(days, labels)
    model = xgboost.train({"objective": objective, "nthread": 1, **parameters}, matrix, 3)
    note_preparation(model, {"target": "y", "classes": classes, "dates": ["since"], "missing": -999.0})
    return scorer(model)


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic"])
def test_two_text_labels_are_predicted(objective: str) -> None:
    made = prepared(objective, Y, ["no", "yes"])
    rows = pd.DataFrame({"since": np.arange(ROWS), "a": FRAME["a"]})
    found = made.named(made.predict(made.checked(rows)))
    margins = made._booster.predict(XGBoostTrainer.matrix(made._booster, rows), output_margin=True)
    assert found["prediction"].tolist() == np.where(margins > 0, "yes", "no").tolist()
    if objective.endswith("logistic"):
        np.testing.assert_allclose(found["probability_no"] + found["probability_yes"], 1, rtol=1e-6)


@pytest.mark.parametrize("objective", ["multi:softmax", "multi:softprob"])
def test_several_text_labels_are_predicted(objective: str) -> None:
    made = prepared(objective, TOWNS.codes, ["Bern", "Lodz", "Oslo"], num_class=3)
    rows = pd.DataFrame({"since": np.arange(ROWS), "a": FRAME["a"]})
    found = made.named(made.predict(made.checked(rows)))
    assert set(found["prediction"]) <= {"Bern", "Lodz", "Oslo"}
    assert len(found.columns) == (4 if objective == "multi:softprob" else 1)


def test_dates_and_the_sentinel_are_what_they_were_in_training() -> None:
    made = prepared("binary:logistic", Y, ["no", "yes"])
    days = np.array([3.0, 40, 150])
    dates = pd.to_datetime("1970-01-01") + pd.to_timedelta(days, unit="D")
    expected = made.checked(pd.DataFrame({"since": days, "a": [0.5, np.nan, 1]}))
    for since in (dates, dates.strftime("%Y-%m-%d"), dates.date):
        found = made.checked(pd.DataFrame({"a": ["0.5", "-999", "1"], "since": since}, dtype=None))
        pd.testing.assert_frame_equal(found, expected)
    missing = made.checked(pd.DataFrame({"since": ["1970-01-04", None, ""], "a": [1, 2, 3]}))
    assert missing["since"].isna().tolist() == [False, True, True]
    with refuses(DataError, field=("row 2", "since"), value="soon", remedy="2024-01-31"):
        made.checked(pd.DataFrame({"since": ["1970-01-04", "soon"], "a": [1, 2]}))


def test_outputs_of_a_network_for_each_class_are_labels() -> None:
    made = TensorScorer(state=None, model_fn=lambda _: lambda rows: rows, preparation={"classes": ["no", "yes"]})
    found = made.predict(made.checked(pd.DataFrame([[0.1, 0.9], [3.0, -1.0]])))
    assert made.named(found)["prediction"].tolist() == ["yes", "no"]
    assert list(made.named(found[:, 0]).columns) == ["prediction"]
