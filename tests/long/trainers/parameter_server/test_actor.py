"""Parameter servers as Ray actors."""

from __future__ import annotations

import os
from typing import Any

import pytest
import ray

from tests.support.refusals import refuses
from tests.support.server_workers import NoPeers, Training, alone
from trainers.errors import GangError
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.server.actor import Servers
from trainers.parameter_server.settings import Settings


def test_servers_beside_workers_are_on_their_nodes_with_resources_of_their_own(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ray.get_runtime_context().get_node_id()
    before = ray.available_resources()["CPU"]
    servers = Servers(0, {"CPU": 1})
    try:
        anywhere = servers.links(1, lambda value: value)
        beside = servers.links(2, lambda value: value, [node, node])
        assert [link.name for link in (*anywhere, *beside)] == [
            "parameter server 0",
            "parameter server 0 beside rank 0",
            "parameter server 1 beside rank 1",
        ]
        assert len({*servers.pids, os.getpid()}) == 4
        assert servers.links(2, lambda value: value, [node, node]) == beside
        assert before - ray.available_resources()["CPU"] == 3
        peers: Any = NoPeers()
        settings = Settings.of({"mode": "async", "server_placement": "each"}, 1)
        over = ServerDistribution(peers=peers, links=beside, settings=settings, seed=0)
        assert (Training()(peers, over).weights == alone(Training()).weights).all()
    finally:
        servers.close()
    monkeypatch.setattr("trainers.parameter_server.server.actor.START_SECONDS", 0.5)
    greedy = Servers(0, {"CPU": 10_000})
    try:
        with refuses(GangError, field="server 0", value="0.5 s", remedy=("CPU", "10000", "ray status")):
            greedy.links(1, lambda value: value)
    finally:
        greedy.close()
