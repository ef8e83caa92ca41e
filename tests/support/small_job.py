"""A job file of XGBoost, and the two tiny tables that it names."""

from __future__ import annotations

from pathlib import Path

import numpy as np

JOB = """
name: tiny
data:
  channels:
    train: {{path: {folder}/train.csv}}
    validation: {{path: {folder}/validation.csv}}
trainer:
  type: xgboost
  hyperparameters: {{objective: "binary:logistic", eval_metric: auc}}
tuning:
  objective_metric_name: validation:auc
  hyperband: {{max_resource: 4, suggestions: random}}
  max_jobs: 2
  random_seed: 1
  ranges:
    eta: {{type: continuous, min: 0.1, max: 1}}
"""


def write_job(folder: Path) -> Path:
    """Writes the tables, a target and three features of which one tells it, and the file, whose path is returned."""
    random = np.random.default_rng(0)
    for name, rows in {"train": 200, "validation": 100}.items():
        features = random.normal(size=(rows, 3))
        target = (features[:, 0] + 0.5 * random.normal(size=rows) > 0).astype(float)
        np.savetxt(folder / f"{name}.csv", np.column_stack([target, features]), delimiter=",", fmt="%.6f")
    file = folder / "job.yaml"
    file.write_text(JOB.format(folder=folder))
    return file
