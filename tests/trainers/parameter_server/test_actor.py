"""Parameter servers as Ray actors."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import ray

from tests.support.server_workers import NoPeers, Training, alone
from trainers.errors import GangError
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.server.actor import Servers
from trainers.parameter_server.settings import Settings


@pytest.mark.ray
@pytest.mark.fault
def test_servers_stay_up_between_trainings_more_are_started_when_asked_for_and_one_that_dies_is_named(
    ray_cluster: None,
) -> None:
    peers: Any = NoPeers()
    servers = Servers(0, lambda value: value)

    def distribution(count: int) -> ServerDistribution:
        settings = Settings.of({"mode": "async", "num_servers": count}, 1)
        return ServerDistribution(peers=peers, links=servers.links(count), settings=settings, seed=0)

    before = ray.available_resources()["CPU"]
    try:
        first = Training()(peers, distribution(1))
        assert (first.weights == alone(Training()).weights).all()
        pids = servers.pids
        Training()(peers, distribution(2))
        assert servers.pids[:1] == pids
        assert len({*servers.pids, os.getpid()}) == 3
        assert ray.available_resources()["CPU"] == before

        def each(peers: Any, optimizer: Any) -> None:
            os.kill(servers.pids[1], signal.SIGKILL)

        with pytest.raises(GangError, match=r"parameter server 1 at .* is gone"):
            Training(each=each)(peers, distribution(2))
    finally:
        servers.close()
