"""Trackers on a machine that has other things to do, and an MLflow server."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpo.trackers import tracker
from tests.support.mlflow_server import mlflow_server


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow tells nobody of these tests, and gives up soon."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A real MLflow server, as a process of its own."""
    with mlflow_server(tmp_path) as running:
        yield running


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested for what it writes has time to."""
    monkeypatch.setattr(tracker, "CLOSE_SECONDS", 120.0)
    monkeypatch.setattr(tracker, "LONGEST_CLOSE_SECONDS", 240.0)
