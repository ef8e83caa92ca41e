"""Categories: on several workers as on one, as XGBoost has them by hand, and in a saved model by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions, refuses, refuses_each
from tests.support.trainers.xgboost.categories import (
    CODES,
    DATA,
    FOREIGN,
    ONE_HOT,
    PARTS,
    PLAIN,
    RANDOM,
    STEPS,
    TOLD,
    as_category,
    channels,
    order,
    predicted,
    program,
    rows,
    written,
)
from trainers import Channel, ConfigurationError, DataError, XGBoostTrainer, storage
from trainers.channels import open_channels
from trainers.gangs.messages import Segment


@pytest.mark.parametrize("how", [ONE_HOT, PARTS])
@pytest.mark.parametrize("kind", ["memory", "csv", "parquet"])
def test_one_worker_trains_what_xgboost_does_by_hand(tmp_path: Path, kind: str, how: dict[str, Any]) -> None:
    written(tmp_path / "rows", kind, "plain")
    [segment] = serve_alone(program(tmp_path / "rows", kind, "plain", **how)(), order(tmp_path, **how))
    assert isinstance(segment, Segment), segment
    frame, told = DATA["plain"], {**TOLD, **how, "nthread": 1}
    by_hand: dict[str, dict[str, list[float]]] = {}
    train, validation = (
        kind_of(as_category(part, sorted(PLAIN)), part["y"], enable_categorical=True)
        for kind_of, part in ((xgboost.QuantileDMatrix, frame), (xgboost.DMatrix, frame[100:300]))
    )
    xgboost.train(told, train, STEPS, evals=[(validation, "v")], evals_result=by_hand, verbose_eval=False)
    for name, values in by_hand["v"].items():
        assert [report.metrics[f"validation:{name}"] for report in segment.reports] == pytest.approx(values, rel=1e-4)
    shuffled = [*RANDOM.permutation(PLAIN)]
    model = predicted(segment.checkpoint, as_category(frame[:200], sorted(PLAIN)))
    np.testing.assert_array_equal(predicted(segment.checkpoint, as_category(frame[:200], shuffled)), model)


@pytest.mark.parametrize("names", [PLAIN, FOREIGN, [12, 3, 7, 99, 20, 21, 22, 23]])
def test_rows_are_as_the_model_knows_them(tmp_path: Path, names: list[Any]) -> None:
    """In another order, as plain values, and with values that it does not know, which are missing."""
    data = rows(PLAIN).assign(town=[names[code % len(names)] for code in CODES])
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0), hyperparameters={**TOLD, **PARTS, "num_round": STEPS}
    )
    channel = Channel.of(data, categorical="town")
    found = trainer.fit({"train": channel, "validation": channel}, storage_path=str(tmp_path))
    model = trainer.load_model(found.checkpoint)

    def of(frame: pd.DataFrame) -> Any:
        return model.predict(trainer.matrix(model, frame))

    own = of(data)
    assert np.sqrt(np.mean((own - data["y"]) ** 2)) == pytest.approx(found.metrics["validation:rmse"], rel=1e-5)
    as_categories = data.assign(town=pd.Categorical(data["town"], [*names[::-1]])).iloc[:, ::-1]
    np.testing.assert_array_equal(of(as_categories), own)
    unknown = "é-" if isinstance(names[0], str) else 4
    np.testing.assert_array_equal(of(data.assign(town=unknown)), of(data.assign(town=None)))


def test_a_method_that_is_tuned_is_held_to_the_categories_too(tmp_path: Path) -> None:
    [error] = serve_alone(program(tmp_path, "memory", "plain")(), order(tmp_path, tree_method="exact"))
    mentions(str(error), "'train'", "categories", "tree_method", "exact")


def test_a_model_knows_its_features_by_name_and_type(tmp_path: Path) -> None:
    [segment] = serve_alone(program(tmp_path, "memory", "plain")(), order(tmp_path))
    model = xgboost.Booster(model_file=bytearray(storage.read(segment.checkpoint)))
    assert model.feature_names == ["x", "town", "z"]
    assert model.feature_types == ["float", "c", "float"]


def test_methods_that_take_no_categories_are_refused(tmp_path: Path) -> None:
    refuses_each(
        [
            (
                program(tmp_path, "memory", "plain", **{name: value}),
                ("'train'", "categories", name, value, "pandas.get_dummies"),
            )
            for name, value in (("tree_method", "exact"), ("booster", "gblinear"))
        ],
        ConfigurationError,
    )


def test_the_other_backend_refuses_categories(tmp_path: Path) -> None:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=2), hyperparameters=TOLD, backend="xgboost_ray")
    field = ("'train'", "categories", "backend")
    with refuses(ConfigurationError, field=field, value="xgboost_ray", remedy="native"):
        trainer.checked(open_channels(channels(tmp_path, "memory", "plain")))


def test_categories_that_xgboost_has_no_name_for_are_refused() -> None:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=TOLD)
    town = pd.Categorical(["Malmö", "Paris"] * 300)

    def checked(values: list[Any]) -> Callable[[], object]:
        rows = DATA["plain"].assign(town=town, z=pd.Categorical(values))
        return lambda: trainer.checked(open_channels({"train": rows}))

    refuses_each(
        [
            (checked([0.5, 1.5] * 300), ("'train'", 0.5, "text", "numbers")),
            (checked([True, False] * 300), ("'train'", False, "text", "numbers")),
            (checked([None] * 600), ("'z'", "categorical", "missing")),
            (checked([1, 2] * 300), ("'train'", "Malmö", "numbers", "text")),
        ],
        DataError,
    )
