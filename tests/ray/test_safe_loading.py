"""What is read back from storage is never executed: no loader that could, and files made to try it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.refusals import mentions
from tests.support.safe_loading import (
    Attack,
    going_on,
    rows,  # noqa: F401  # Fixtures.
)
from trainers import TrialError, XGBoostTrainer
from trainers.channels import open_channels
from trainers.result import serve_alone


def test_xgboost_ray_refuses_the_same(ray_cluster: None, rows: dict[str, Any], tmp_path: Path) -> None:
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=1),
        backend="xgboost_ray",
        hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 2},
    )
    place, ran = tmp_path / "model.ubj", tmp_path / "ran"
    place.write_bytes(pickle.dumps(Attack(ran)))
    with trainer.gangs("attacked", trainer.checked(open_channels(rows))) as gangs, pytest.raises(TrialError) as on:
        serve_alone(gangs, going_on(trainer, place, tmp_path), 1, 120.0)
    mentions(str(on.value), "checkpoint", str(place), "XGBoost", "restore")
    assert not ran.exists()
