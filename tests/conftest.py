"""One Ray cluster for the whole session, and a home of its own for what tests keep."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Ray with more logical CPUs than this machine has cores: four gangs of three fit, and a little more."""
    import ray

    ray.init(address="local", num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps what a test writes out of the user's home."""
    folder = tmp_path / "home"
    monkeypatch.setenv("WARMBAND_HOME", str(folder))
    monkeypatch.delenv("WARMBAND_STORE", raising=False)
    return folder
