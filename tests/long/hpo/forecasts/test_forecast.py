"""What a job will take: the arithmetic and its laws, what earlier jobs say, and how far off it was for a real job."""

from __future__ import annotations

import io
import math
import time
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig
from rich.console import Console

from hpo import HyperparameterTuner
from hpo.forecasts.forecast import PROBE
from tests.support.boosting import CHANNELS
from tests.support.jobs import RANGES, STATIC
from trainers import XGBoostTrainer


def test_a_gang_is_probed_where_there_is_no_earlier_job(ray_cluster: None, home: Path) -> None:
    """A real gang, and the same job for real afterwards: the error is measured and recorded."""
    settings: dict[str, Any] = {
        "strategy": "Random",
        "max_jobs": 2,
        "console": Console(file=io.StringIO(), width=120),
        "random_seed": 7,
    }
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=1), hyperparameters={**STATIC, "num_round": 20})
    tuner = HyperparameterTuner(trainer, "validation:auc", RANGES, **settings)
    began = time.monotonic()
    made = tuner.forecast(CHANNELS)
    took = time.monotonic() - began
    assert made.source == PROBE
    assert 0.5 < made.expected.worker_seconds < took + made.expected.wall_seconds
    assert not list((home / "jobs").glob("*"))
    tuner.fit(CHANNELS)
    after = tuner.describe()["Summary"]["forecast"]
    assert after["source"] == PROBE, "what was probed is no job, so the job made its own forecast"
    assert set(after["error"]) == {"worker_seconds", "wall_seconds"}
    assert all(math.isfinite(value) for value in after["error"].values())
