"""A working directory with a job to submit, and the command that submits it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hpo.cli import app
from tests.support.boosting import CHANNELS
from trainers.errors import WarmbandError

JOB = """
data:
  channels:
    train: {path: train.csv}
    validation: {path: validation.csv}
trainer:
  type: xgboost
  num_workers: 0
  resources_per_worker: {CPU: 1}
  hyperparameters: {objective: binary:logistic, eval_metric: auc}
tuning:
  objective_metric_name: validation:auc
  strategy: Hyperband
  hyperband: {max_resource: 9, suggestions: random}
  max_jobs: 6
  random_seed: 1
  ranges:
    eta: {type: continuous, min: 0.01, max: 1}
tags: {team: churn}
"""


def project(place: Path, patch: pytest.MonkeyPatch) -> None:
    """Makes a folder the working directory, with a job file and its data, and forgets Ray's variables."""
    (place / "job.yaml").write_text(JOB)
    for name, frame in CHANNELS.items():
        frame.to_csv(place / f"{name}.csv", index=False)
    patch.chdir(place)
    for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        patch.delenv(name, raising=False)


def hpo(*arguments: str, code: int = 0) -> Result:
    """A command's result, whose exit code is as it should be."""
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, arguments)
    if isinstance(result.exception, WarmbandError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result
