"""A small job file, and a change of one of its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import yaml_text

JOB = """
name: small
data:
  channels:
    train: {path: train.csv}
    validation: {path: validation.csv}
trainer:
  type: xgboost
  num_workers: 2
  hyperparameters: {eval_metric: auc, num_round: 9}
tuning:
  objective_metric_name: validation:auc
  max_jobs: 4
  ranges:
    eta: {type: continuous, min: 0.001, max: 1, scaling: Logarithmic}
    max_depth: {type: integer, min: 1, max: 10}
    updater: {type: categorical, values: [gbtree, dart, 1, 1.5, true, null]}
"""


def change(path: Path, keys: str, value: Any) -> None:
    """Writes a value at a dotted key of a job file."""
    state = yaml_text.load(path.read_text())
    *parents, last = keys.split(".")
    group = state
    for parent in parents:
        group = group[parent]
    group[last] = value
    path.write_text(yaml_text.dump(state))
