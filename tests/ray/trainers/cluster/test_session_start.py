"""Ray on a busy machine: started again where its processes came too late, and with workers that get their share."""

from __future__ import annotations

import os

import pytest
import ray

NAME = "RAY_worker_niceness"


@pytest.fixture(autouse=True)
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Ray was asked to end: here it is no Ray of these tests, and the session's stays."""
    ended: list[str] = []
    monkeypatch.setattr(ray, "shutdown", lambda: ended.append("ray"))
    return ended


def test_rays_workers_take_it_from_there(ray_cluster: None) -> None:
    """The tests' own Ray is started with it: tests/conftest.py."""
    assert os.environ[NAME] == "0"

    @ray.remote(num_cpus=0)
    def niceness() -> int:
        return os.nice(0)

    assert ray.get(niceness.remote(), timeout=120) == os.nice(0)
