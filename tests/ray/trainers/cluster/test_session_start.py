"""Ray on a busy machine: started again where its processes came too late, and with workers that get their share."""

from __future__ import annotations

import os

import ray

from tests.support.trainers.cluster.session_start import ended  # noqa: F401  # Of every test.

NAME = "RAY_worker_niceness"


def test_rays_workers_take_it_from_there(ray_cluster: None) -> None:
    """The tests' own Ray is started with it: tests/conftest.py."""
    assert os.environ[NAME] == "0"

    @ray.remote(num_cpus=0)
    def niceness() -> int:
        return os.nice(0)

    assert ray.get(niceness.remote(), timeout=120) == os.nice(0)
