"""Monotone and interaction constraints in all of XGBoost's spellings, also out of a record and a job file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from ray.train import ScalingConfig

from hpo.job_file import read_job
from tests.support import yaml_text
from tests.support.assignments import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses_each
from trainers import Channel, ConfigurationError, XGBoostTrainer, storage
from trainers.gangs.messages import Segment
from trainers.registry import trainer_from_json

RANDOM = np.random.default_rng(17)
FRAME = pd.DataFrame(RANDOM.normal(size=(300, 3)).astype(np.float32), columns=["age", "pay", "days"])
FRAME.insert(0, "y", (FRAME["age"] * FRAME["pay"] - FRAME["days"] + RANDOM.normal(size=300)).astype(np.float32))

MONOTONE = [
    (1, 0, -1),
    [1, 0, -1],
    (np.int64(1), np.int64(0), np.int64(-1)),
    "(1,0,-1)",
    "(1, 0, -1)",
    {"age": 1, "pay": 0, "days": -1},
    {"days": -1, "age": 1},
]
INTERACTION = [
    [[0, 1], [2]],
    ([0, 1], (2,)),
    "[[0, 1], [2]]",
    "[[0,1],[2]]",
    [["age", "pay"], ["days"]],
]


def trained(trainer: XGBoostTrainer, folder: Path) -> bytes:
    """The trees that it grows."""
    channel = Channel.of(FRAME, target="y", name="train")
    program = trainer.program({"train": channel.place(0)})
    [segment] = serve_alone(
        program, assignment(hyperparameters=trainer.hyperparameters, stop=3, save_to=str(folder / "3.ubj"))
    )
    assert isinstance(segment, Segment), segment
    return dumped(xgboost.Booster(model_file=bytearray(storage.read(segment.checkpoint))))


def dumped(booster: xgboost.Booster) -> bytes:
    return "".join(booster.get_dump(with_stats=True)).encode()


def by_hand(**told: Any) -> bytes:
    rows = xgboost.QuantileDMatrix(FRAME[["age", "pay", "days"]], FRAME["y"])
    return dumped(xgboost.train({"nthread": 1, **told}, rows, 3))


def job_of(folder: Path, hyperparameters: dict[str, Any]) -> XGBoostTrainer:
    path = folder / "job.yaml"
    FRAME.to_csv(folder / "rows.csv", index=False)
    rows = {"path": str(folder / "rows.csv"), "target": "y"}
    text = {
        "name": "job",
        "data": {"channels": {"train": rows, "validation": rows}},
        "trainer": {
            "type": "xgboost",
            "num_workers": 0,
            "hyperparameters": {"eval_metric": "rmse", **hyperparameters},
        },
        "tuning": {
            "objective_metric_name": "validation:rmse",
            "objective_type": "Minimize",
            "ranges": {"eta": {"type": "continuous", "min": 0.05, "max": 1.0}},
            "hyperband": {"max_resource": 4},
            "max_jobs": 4,
        },
    }
    path.write_text(yaml_text.dump(text))
    made = read_job(path).trainer.trainer()
    assert isinstance(made, XGBoostTrainer)
    return made


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        *(("monotone_constraints", spelling) for spelling in MONOTONE),
        *(("interaction_constraints", spelling) for spelling in INTERACTION),
    ],
)
def test_a_spelling_is_the_constraint(tmp_path: Path, name: str, spelling: Any) -> None:
    first = {"monotone_constraints": (1, 0, -1), "interaction_constraints": [[0, 1], [2]]}[name]
    expected = by_hand(**{name: str(first)})
    assert expected != by_hand(), "the constraint changes nothing"
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={"nthread": 1, name: spelling})
    trainer.checked({"train": Channel.of(FRAME, target="y")})
    assert trained(trainer, tmp_path) == expected
    recorded = json.loads(json.dumps(trainer.to_json(), default=lambda number: number.item()))
    assert trained(trainer_from_json(recorded), tmp_path) == expected  # type: ignore[arg-type]
    written = recorded["hyperparameters"]
    made = job_of(tmp_path, written)
    assert trained(made, tmp_path) == expected


def test_a_constraint_that_the_rows_do_not_have_is_refused() -> None:
    monotone, interaction = "monotone_constraints", "interaction_constraints"

    def checked(name: str, value: Any) -> None:
        XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={name: value}).checked(
            {"train": Channel.of(FRAME, target="y")}
        )

    refuses_each(
        [
            (lambda: checked(monotone, {"aeg": 1}), (monotone, "'aeg'", "'age'")),
            (lambda: checked(interaction, [["age", "pya"]]), (interaction, "'pya'", "'pay'")),
            (
                lambda: checked(interaction, '[["age", "pay"]]'),
                (interaction, '[["age", "pay"]]', "[[0, 1], [2]]"),
            ),
            (lambda: checked(monotone, (1, 0, -1, 1)), (monotone, 4, "'train'", 3)),
            (lambda: checked(monotone, "(1,0,-1,1)"), (monotone, 4, "'train'", 3)),
            (lambda: checked(interaction, [[0, 3]]), (interaction, 3, "'train'", 0)),
            (lambda: checked(monotone, "(1,0,2)"), (monotone, "(1,0,2)", "(1,0,-1)")),
            (lambda: checked(interaction, "[[0, 1"), (interaction, "'[[0, 1'", "[[0, 1], [2]]")),
        ],
        ConfigurationError,
    )
