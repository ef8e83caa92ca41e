"""Tuning jobs on rows of which more is said than their labels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from tests.support.boosting import table
from trainers import XGBoostTrainer


@pytest.mark.parametrize("said", [{}, {"weight": np.arange(200.0)}, {"qid": np.repeat(np.arange(20), 10)}])
def test_a_standard_error_is_of_rows_that_count_alike(said: dict[str, Any], home: Path) -> None:
    rows = table(200, seed=0)
    tuner = HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3},
        ),
        "validation:auc",
        {"eta": ContinuousParameter(0.05, 1)},
        max_jobs=2,
        random_seed=7,
        console=Console(file=io.StringIO()),
    )
    parts = (rows.drop(columns="y"), rows["y"], said)
    tuner.fit({"train": parts, "validation": parts}, job_name="said")
    best = tuner.describe()["Summary"]["best"]
    assert (best.get("standard_error") is None) == bool(said)
