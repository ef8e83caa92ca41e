"""What a worker of XGBoost's gangs holds between trials; no Ray."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from trainers import Channel, XGBoostTrainer, storage
from trainers.gangs.in_process import alone
from trainers.gangs.messages import Assignment

STATIC = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 3}
TABLE = np.random.default_rng(0).normal(size=(300, 4)).astype("float32")
TABLE[:, 0] = TABLE[:, 1] > 0


def program(**hyperparameters: Any) -> Any:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**STATIC, **hyperparameters})
    return trainer.program({name: Channel.of(TABLE, name=name).place(0) for name in ("train", "validation")})


def order(folder: Path, **hyperparameters: Any) -> Assignment:
    return assignment(hyperparameters={**STATIC, **hyperparameters}, stop=2, save_to=str(folder / "000002.ubj"))


def matrices() -> int:
    """How many there are in this process."""
    gc.collect()
    kinds = (xgboost.DMatrix, xgboost.QuantileDMatrix)
    return sum(type(held) in kinds for held in gc.get_objects())


@pytest.mark.process  # For its time: it looks through all objects of the process.
def test_matrices_of_a_tuned_max_bin_are_kept_for_the_last_two_values(tmp_path: Path) -> None:
    before = matrices()
    served = program()
    served.open(alone(1))
    opened = matrices()
    models = {}
    for max_bin in (16, 32, 64, 16, 128, 16):
        segment = served.train(order(tmp_path, max_bin=max_bin), lambda report: None)
        assert matrices() <= opened + 1, "one beside those that it opened with"
        models.setdefault(max_bin, set()).add(storage.read(segment.checkpoint))
    assert [len(of_value) for of_value in models.values()] == [1, 1, 1, 1]
    served.close()
    assert matrices() == before
