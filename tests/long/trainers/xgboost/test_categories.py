"""Categories: on several workers as on one, as XGBoost has them by hand, and in a saved model by their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from ray.train import ScalingConfig

from tests.support.trainers.xgboost.categories import TOLD, channels, written
from trainers import XGBoostTrainer


def test_ray_s_workers_have_the_categories(ray_cluster: None, tmp_path: Path) -> None:
    for kind in ("memory", "csv"):
        written(tmp_path / "rows", kind, "foreign")
        alone, two = (
            XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters={**TOLD, "num_round": 3}).fit(
                channels(tmp_path / "rows", kind, "foreign"), storage_path=str(tmp_path / f"{kind}{workers}")
            )
            for workers in (0, 2)
        )
        assert two.metrics == pytest.approx(alone.metrics, rel=1e-4)
