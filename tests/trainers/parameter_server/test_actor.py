"""Parameter servers as Ray actors."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import ray

from tests.support.networks import data, train_adam
from tests.support.server_workers import NoPeers, Training, alone
from trainers import Channel
from trainers.errors import GangError
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
        assert ray.available_resources()["CPU"] == before

        def each(peers: Any, optimizer: Any) -> None:
            os.kill(servers.pids[1], signal.SIGKILL)

        with pytest.raises(GangError, match=r"parameter server 1 at .* is gone"):
            Training(each=each)(peers, distribution(2))
    finally:
        servers.close()


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
