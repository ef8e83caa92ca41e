"""Servers and workers over sockets: who may come in, and what the others hear when one is gone."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import torch

from tests.support.process_gang import warm_context
from tests.support.refusals import refuses
from tests.support.server_workers import Training, served
from tests.support.trainers.parameter_server.wire import (
    linked,
    over,
    stack,  # noqa: F401  # Fixtures.
    step,
)
from trainers.errors import GangError
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.server.listener import Listener
from trainers.parameter_server.server.server import Server
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.simulation.workers import simulate
from trainers.parameter_server.wire import Address, SocketLink


def steps(distribution: Any, count: int) -> None:
    for _ in range(count):
        distribution.step()


def _serve(name: str, pipe: Any) -> None:
    listener = Listener(Server(name), "127.0.0.1", secrets.token_bytes(32))
    pipe.send(listener.address)
    time.sleep(120)


@pytest.fixture
def processes() -> Iterator[list[Address]]:
    """Two servers in processes of their own."""
    context = warm_context()
    started, addresses = [], []
    for number in range(2):
        mine, theirs = context.Pipe()
        started.append(context.Process(target=_serve, args=(f"parameter server {number}", theirs)))
        started[-1].start()
        addresses.append(mine)
    yield [pipe.recv() for pipe in addresses]
    for process in started:
        process.kill()
        process.join()


@pytest.mark.fault
def test_a_server_that_is_killed_is_named(processes: list[Address], stack: ExitStack) -> None:
    distribution = over(linked(stack, *processes))
    step(distribution)
    distribution.step()
    os.kill(processes[1].pid, signal.SIGKILL)
    with refuses(GangError, field="parameter server 1", value=f"127.0.0.1:{processes[1].port}"):
        steps(distribution, 3)  # What is sent before the system knows is lost without an error.
    assert distribution.close() == {}
    with refuses(GangError, field="parameter server 1"):
        step(over(linked(stack, *processes)))


def _train(rank: int, addresses: list[Address], settings: Settings, shared: Any, pipe: Any) -> None:
    torch.set_num_threads(1)

    class Peer:
        world_size = settings.workers

        def gather(self, value: Any) -> list[Any]:
            if rank == 0:
                shared.put(value)
            return [value if rank == 0 else shared.get()]

        def broadcast(self, values: Any) -> None:
            values.fill_(0.25)

    peers: Any = Peer()
    peers.rank = rank
    links = [SocketLink(address, rank) for address in addresses]
    distribution = ServerDistribution(peers=peers, links=links, settings=settings, seed=0)
    pipe.send(Training()(peers, distribution).weights.tolist())


def test_processes_train_as_simulated_ones_do_to_the_last_bit(stack: ExitStack) -> None:
    settings = Settings.of({"mode": "sync", "num_servers": 2}, 2)
    addresses = [listener.address for listener in served(2, stack)]
    context = warm_context()
    shared, pipes = context.Queue(), []
    for rank in range(2):
        mine, theirs = context.Pipe()
        process = context.Process(target=_train, args=(rank, addresses, settings, shared, theirs))
        process.start()
        stack.callback(process.join)
        pipes.append(mine)
    found = [pipe.recv() for pipe in pipes]

    def work(peers: Any, distribution: Any) -> Any:
        peers.broadcast = lambda values: values.fill_(0.25)
        return Training()(peers, distribution).weights.tolist()

    assert found == simulate(work, settings, seed=0)
