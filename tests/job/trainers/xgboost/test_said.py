"""Weights, margins and bounds of labels: on several workers as on one, and as XGBoost has them by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray.train import ScalingConfig

from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions, refuses
from tests.support.trainers.xgboost.said import BINARY, CASES, CLASSES, FRAME, channels, order, program
from trainers import Channel, ConfigurationError, XGBoostTrainer


@pytest.mark.parametrize(
    ("said", "hyperparameters", "names"),
    [
        ({"base_margin": ["m0", "m1"]}, CLASSES, ("2", "multi:softprob", "3")),
        ({"base_margin": ["m0", "m1"]}, BINARY, ("2", "binary:logistic", "1")),
        (
            {"base_margin": "m0"},
            {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9], "eval_metric": "quantile"},
            ("1", "reg:quantileerror", "2"),
        ),
    ],
)
@pytest.mark.parametrize("kind", ["frame", "parts", "parquet"])
def test_margins_are_one_an_output(
    said: dict[str, Any], hyperparameters: dict[str, Any], names: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=hyperparameters)
    frame = FRAME[["of_three" if hyperparameters is CLASSES else "y", "a", "m0", "m1"]]
    frame.to_parquet(path := str(tmp_path / "rows.parquet"))
    sources = {
        "frame": lambda: Channel.of(frame[[frame.columns[0], *np.ravel(said["base_margin"]), "a"]], target=0, **said),
        "parts": lambda: Channel.of(
            (frame[["a"]], frame.iloc[:, 0], {"base_margin": frame[said["base_margin"]].to_numpy()})
        ),
        "parquet": lambda: Channel.of(path, target=0, **said),
    }
    with refuses(ConfigurationError, field=("'train'", "base_margin", *names)):
        trainer.checked({"train": sources[kind]()})


def test_margins_are_held_to_a_tuned_number_of_classes(tmp_path: Path) -> None:
    case = CASES[2]
    [error] = serve_alone(program(case)(), order(tmp_path, case, num_class=4))
    mentions(str(error), "'train'", 3, "base_margin", "multi:softprob", 4)


def test_ams_has_no_use_for_weights_of_queries() -> None:
    told = {"objective": "rank:map", "eval_metric": ["map", "ams@0.15"]}
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=told)
    with refuses(ConfigurationError, field=("'train'", "queries", "weights"), value="ams@0.15"):
        trainer.checked(channels("y", {"qid": "q", "weight": "of_query"}))
