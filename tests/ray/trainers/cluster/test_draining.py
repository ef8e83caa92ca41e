"""Drain notices: looked for beside the job, and nobody waits for a head that does not answer."""

from __future__ import annotations

import time

import pytest
import ray

from trainers.cluster import draining
from trainers.cluster.draining import Notices


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "LOOK_SECONDS", 0.01)


def test_a_cluster_that_is_left_alone_has_no_drained_nodes(ray_cluster: None) -> None:
    address = ray.get_runtime_context().gcs_address
    look = draining.look_at(address)
    [node] = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    # What a test before held is given back while this one looks.
    deadline = time.monotonic() + 60.0
    while True:
        drained, free_on = look()
        if (drained, free_on[node]["CPU"]) == (frozenset(), ray.available_resources()["CPU"]):
            break
        assert time.monotonic() < deadline, f"{drained} and {free_on} are not what Ray says for 60 s"
        time.sleep(0.5)
    notices = Notices()
    assert notices.free()["CPU"] == ray.available_resources()["CPU"]
    notices.close()
