"""Endpoints on Ray Serve: they answer what the model predicts, live through a killed replica, and end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpo import TrainingJob
from tests.support.hpo.endpoints.endpoint import (
    TRAIN,
    expected,
    job,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import mentions


def test_a_cluster_that_cannot_be_asked_hides_no_list(job: TrainingJob) -> None:
    """As where RAY_ADDRESS is that of the jobs server, which `hpo submit` takes."""
    command = [sys.executable, "-m", "hpo", "endpoints", "--store", str(job._store)]
    environment = {**os.environ, "RAY_ADDRESS": "http://127.0.0.1:8265"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "hpo deploy" in done.stdout or "churn-live" in done.stdout
    mentions(done.stderr, "RAY_ADDRESS", "http://127.0.0.1:8265", "HEAD:6379")


def test_files_are_predicted_by_the_command(job: TrainingJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from hpo.cli import app

    TRAIN.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "p.parquet"
    ran = CliRunner().invoke(
        app, ["predict", "churn", str(tmp_path / "new.csv"), "-o", str(out), "--store", str(job._store)]
    )
    assert ran.exit_code == 0, ran.output
    mentions(ran.output, "300", str(out))
    np.testing.assert_allclose(pd.read_parquet(out)["prediction"], expected(job), rtol=1e-5)
