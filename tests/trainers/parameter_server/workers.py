"""Workers for tests: a small network to train, and threads that train it over real sockets."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.listener import Listener
from trainers.parameter_server.server import Server
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.wire import SocketLink
from trainers.pytorch.distribution import Distribution, MicroBatch, Peers

DEADLINE = 30.0


class ThreadPeers:
    """Peers that are threads of this process."""

    def __init__(self, rank: int, world_size: int, barrier: threading.Barrier, slots: list[Any]) -> None:
        self.rank, self.world_size, self._barrier, self._slots = rank, world_size, barrier, slots

    def gather(self, value: Any) -> list[Any]:
        self._slots[self.rank] = value
        self._barrier.wait(DEADLINE)
        found = list(self._slots)
        self._barrier.wait(DEADLINE)
        return found

    def sum(self, values: Tensor) -> Tensor:
        return torch.stack(self.gather(values.clone())).sum(0)

    def broadcast(self, values: Tensor) -> None:
        values.copy_(self.gather(values.clone())[0])

    def meet(self, what: str) -> None:
        self.gather(what)


def served(servers: int, stack: ExitStack) -> list[Listener]:
    """Servers on real sockets, until the stack closes."""
    found = []
    for number in range(servers):
        found.append(Listener(Server(f"parameter server {number}"), "127.0.0.1", secrets.token_bytes(32)))
        stack.callback(found[-1].close)
    return found


def over_sockets(
    worker: Callable[[Peers, Distribution], Any], settings: Settings, *, patience: float = DEADLINE, seed: int = 0
) -> list[Any]:
    """What workers in threads return or raise, with servers on real sockets."""
    count = settings.workers
    barrier, slots = threading.Barrier(count), [None] * count
    results: list[Any] = [None] * count
    with ExitStack() as stack:
        addresses = [listener.address for listener in served(settings.num_servers, stack)]

        def run(rank: int) -> None:
            links = [SocketLink(address, rank) for address in addresses]
            try:
                peers = ThreadPeers(rank, count, barrier, slots)
                distribution = ServerDistribution(
                    peers=peers, links=links, settings=settings, seed=seed, patience=patience
                )
                results[rank] = worker(peers, distribution)
            except BaseException as error:
                results[rank] = error
            finally:
                for link in links:
                    link.close()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * DEADLINE)
            assert not thread.is_alive()
    return results
