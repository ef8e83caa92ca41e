"""Whether a cluster's head answers: with sockets that are there, that are not, and that come and go."""

from __future__ import annotations

import pytest
import ray

from tests.support.refusals import refuses
from tests.support.trainers.cluster.head import port  # noqa: F401  # A fixture.
from trainers.cluster import head
from trainers.errors import GangError, ResourcesError


def test_an_error_of_a_block_is_the_clusters_only_where_that_is_gone(
    ray_cluster: None, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with pytest.raises(RuntimeError, match="in the job"), head.watched(said.append):
        raise RuntimeError("in the job")
    monkeypatch.setattr(type(ray.get_runtime_context()), "gcs_address", f"127.0.0.1:{port}")
    with pytest.raises(ResourcesError, match="too few"), head.watched(said.append):
        raise ResourcesError("too few")
    place = f"127.0.0.1:{port}"
    with refuses(GangError, field=place, value="RuntimeError", remedy="hpo resume"), head.watched(said.append):
        raise RuntimeError("actor unavailable")
    assert not said
