"""The Ray cluster of a job: an open one is left as it was. One of its own: test_loopback."""

from __future__ import annotations

import pytest
import ray

from trainers.cluster.session import cluster


def test_an_open_session_is_used_and_left_open(ray_cluster: None) -> None:
    said: list[str] = []
    before = ray.get_runtime_context().get_job_id()
    with cluster(1000, said.append) as found:
        assert not found.private
        assert ray.get_runtime_context().get_job_id() == before
        assert ray.cluster_resources()["CPU"] == 16
    assert ray.is_initialized()
    assert ray.get_runtime_context().get_job_id() == before
    assert not said


def test_an_open_session_is_left_open_after_an_error(ray_cluster: None) -> None:
    with pytest.raises(RuntimeError, match="in the job"), cluster(1):
        raise RuntimeError("in the job")
    assert ray.is_initialized()
