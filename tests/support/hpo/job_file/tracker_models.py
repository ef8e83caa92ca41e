"""A job file for trackers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

JOB = """\
name: churn
data:
  channels:
    train: {path: train.csv}
    validation: {path: train.csv}
trainer:
  type: xgboost
  num_workers: 0
  hyperparameters: {objective: "binary:logistic", eval_metric: auc}
tuning:
  objective_metric_name: validation:auc
  max_jobs: 5
  random_seed: 1
  hyperband: {max_resource: 3}
  ranges:
    eta: {type: continuous, min: 0.001, max: 1}
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job file, and the rows that it trains on."""
    rows = np.random.default_rng(0).random((80, 4))
    rows[:, 0] = rows[:, 1] > 0.5
    np.savetxt(tmp_path / "train.csv", rows, delimiter=",")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    return file
