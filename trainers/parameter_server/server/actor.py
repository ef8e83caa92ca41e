"""Parameter servers as Ray actors, warm for the life of their gang."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import ray
import torch

from trainers.errors import GangError
from trainers.parameter_server.server.listener import Listener
from trainers.parameter_server.server.server import Server
from trainers.parameter_server.wire import Address, SocketLink
from trainers.process import end_surely

START_SECONDS = 120.0
"""How long a server's process may take to start; it imports PyTorch."""


class ServerActor:
    """A parameter server in a process of its own."""

    def __init__(self, name: str, token: bytes) -> None:
        end_surely()
        # Its work is additions on rows of memory, and the cores are the workers'.
        torch.set_num_threads(1)
        # The first optimizer of a process imports torch's compiler, for seconds that are no trial's.
        torch.optim.SGD([torch.zeros(1)])
        self._listener = Listener(Server(name), ray.util.get_node_ip_address(), token)

    def address(self) -> Address:
        """Where it listens."""
        return self._listener.address


class Servers:
    """A gang's parameter servers, as one of its workers sees them. All workers call all methods, in the same order.

    Rank 0 starts them, outside the gang's placement group and for no CPU of Ray's, and they end with it. They serve one
    training after another.

    Args:
        rank: of this worker.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._actors: list[Any] = []
        self._links: list[SocketLink] = []

    def start(self, count: int) -> None:
        """Begins to start those of the first `count` servers that are missing; `links` waits for them."""
        if self._rank == 0:
            actor: Any = ray.remote(num_cpus=0)(ServerActor).options(scheduling_strategy="DEFAULT")
            for number in range(len(self._actors), count):
                self._actors.append(actor.remote(_name(number), secrets.token_bytes(32)))

    def links(self, count: int, share: Callable[[Any], Any]) -> Sequence[SocketLink]:
        """Links to the first `count` servers; those that are missing are started.

        Args:
            count: how many.
            share: gives every worker what rank 0 hands in.

        Raises:
            GangError: one did not start.
        """
        if count > len(self._links):
            self.start(count)
            addresses = share(self._addresses(count) if self._rank == 0 else None)
            if isinstance(addresses, str):
                raise GangError(addresses)
            self._links += [SocketLink(address, self._rank) for address in addresses]
        return self._links[:count]

    @property
    def pids(self) -> list[int]:
        """Process ids of the servers, each on its own node."""
        return [link.address.pid for link in self._links]

    def close(self) -> None:
        """Ends connections and servers."""
        for link in self._links:
            link.close()
        for actor in self._actors:
            ray.kill(actor)
        self._actors, self._links = [], []

    def _addresses(self, count: int) -> list[Address] | str:
        """Addresses of the servers up to `count` that there are no links to yet; or why there are none."""
        missing = range(len(self._links), count)
        try:
            addresses: list[Address] = ray.get(
                [self._actors[number].address.remote() for number in missing], timeout=START_SECONDS
            )
        except Exception as error:
            return f"{', '.join(map(_name, missing))} did not start: {type(error).__name__}: {error}"
        return addresses


def _name(number: int) -> str:
    return f"parameter server {number}"
