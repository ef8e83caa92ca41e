"""Parameter servers as Ray actors."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import ray
from ray.train import ScalingConfig

from tests.support.refusals import refuses
from tests.support.server_workers import NoPeers, Training, alone
from trainers.errors import GangError, ResourcesError
from trainers.gangs.capacity import check_beside
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.server.actor import Servers
from trainers.parameter_server.settings import Settings


@pytest.mark.fault
def test_servers_stay_up_between_trainings_more_are_started_when_asked_for_and_one_that_dies_is_named(
    ray_cluster: None,
) -> None:
    peers: Any = NoPeers()
    servers = Servers(0)

    def distribution(count: int) -> ServerDistribution:
        settings = Settings.of({"mode": "async", "num_servers": count}, 1)
        return ServerDistribution(
            peers=peers, links=servers.links(count, lambda value: value), settings=settings, seed=0
        )

    before = ray.available_resources()["CPU"]
    try:
        first = Training()(peers, distribution(1))
        assert (first.weights == alone(Training()).weights).all()
        pids = servers.pids
        Training()(peers, distribution(2))
        assert servers.pids[:1] == pids
        assert len({*servers.pids, os.getpid()}) == 3
        assert ray.available_resources()["CPU"] >= before  # An earlier test may have given some back.

        def each(peers: Any, optimizer: Any) -> None:
            os.kill(servers.pids[1], signal.SIGKILL)

        with refuses(GangError, field="parameter server 1"):
            Training(each=each)(peers, distribution(2))
    finally:
        servers.close()


def test_a_cluster_that_does_not_hold_the_servers_is_refused(ray_cluster: None) -> None:
    cpus = int(ray.cluster_resources()["CPU"])
    check_beside(ScalingConfig(num_workers=1), 1, {"CPU": 1}, cpus - 1)
    with refuses(
        ResourcesError, field=("workers", "1 CPU", "parameter servers"), value=cpus, remedy="server_resources"
    ):
        check_beside(ScalingConfig(num_workers=1), 1, {"CPU": 1}, cpus)
    with refuses(ResourcesError, field=("parameter servers", "1 GPU"), value="0 GPU", remedy="server_resources"):
        check_beside(ScalingConfig(num_workers=1), 1, {"GPU": 1}, 1)
