"""Weights, margins and bounds of labels: on several workers as on one, and as XGBoost has them by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from ray.train import ScalingConfig

from tests.support.trainers.xgboost.said import CASES, channels
from trainers import XGBoostTrainer


def test_ray_s_workers_have_the_queries_and_weights(ray_cluster: None, tmp_path: Path) -> None:
    for case in (CASES[1], CASES[7]):
        alone, two = (
            XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters={**case[2], "num_round": 3}).fit(
                channels(*case[:2]), storage_path=str(tmp_path / str(workers))
            )
            for workers in (0, 2)
        )
        assert two.metrics == pytest.approx(alone.metrics, rel=1e-4)
