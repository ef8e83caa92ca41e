"""Parameter servers as Ray actors."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import ray
from ray.train import ScalingConfig

from tests.support.networks import data, train_adam
from tests.support.refusals import refuses
from tests.support.server_workers import NoPeers, Training, alone
from trainers import Channel
from trainers.errors import GangError, ResourcesError
from trainers.gangs.capacity import check_beside
from trainers.gangs.program import WorkerContext
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.server.actor import Servers
from trainers.parameter_server.settings import Settings
from trainers.pytorch.layouts import LaidOut, Layout
from trainers.pytorch.program import FunctionProgram, FunctionSettings


@pytest.mark.ray
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


@pytest.mark.long
@pytest.mark.ray
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


@pytest.mark.ray
def test_a_cluster_that_does_not_hold_the_servers_is_refused(ray_cluster: None) -> None:
    cpus = int(ray.cluster_resources()["CPU"])
    check_beside(ScalingConfig(num_workers=1), 1, {"CPU": 1}, cpus - 1)
    with refuses(
        ResourcesError, field=("workers", "1 CPU", "parameter servers"), value=cpus, remedy="server_resources"
    ):
        check_beside(ScalingConfig(num_workers=1), 1, {"CPU": 1}, cpus)
    with refuses(ResourcesError, field=("parameter servers", "1 GPU"), value="0 GPU", remedy="server_resources"):
        check_beside(ScalingConfig(num_workers=1), 1, {"GPU": 1}, 1)


def test_a_gang_begins_to_start_its_servers_before_it_reads_its_rows_and_joins_them_after() -> None:
    """Their processes take seconds to start, in which its own workers are busy anyway."""
    done: list[str] = []

    class Noted(LaidOut):
        def open(self, context: WorkerContext) -> None:
            done.append("open")

        def join(self, peers: Any, device: Any) -> None:
            done.append("join")

    class Rows:
        name = "train"
        source = Channel.of(data(8), name=name).source
        replicated = False

        def pieces(self, rank: int, world_size: int) -> Any:
            done.append("rows")
            return Channel.of(data(8), name=self.name).place(0).pieces(rank, world_size)

    rows: Any = Rows()
    settings = FunctionSettings(function=train_adam, use_gpu=False, report_timeout_s=60.0)
    program = FunctionProgram({"train": rows}, settings, Noted(Layout(), 60.0))
    program.open(
        WorkerContext(rank=0, world_size=1, node_ip="127.0.0.1", cpus=1, broadcast=lambda value: value, in_hand=True)
    )
    program.close()
    assert done == ["open", "rows", "join"]
