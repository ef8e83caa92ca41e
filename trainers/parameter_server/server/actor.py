"""Parameter servers as Ray actors, warm for the life of their gang."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
import torch
from ray.exceptions import GetTimeoutError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trainers.errors import GangError
from trainers.parameter_server.server.listener import Listener
from trainers.parameter_server.server.server import Server
from trainers.parameter_server.wire import Address, SocketLink
from trainers.process import end_surely

START_SECONDS = 120.0
"""How long a server's process may take to start; it imports PyTorch."""

_NAMED = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""Resources that Ray's actors have an option for, and the option."""


class ServerActor:
    """A parameter server in a process of its own."""

    def __init__(self, name: str, token: bytes, threads: int = 1) -> None:
        end_surely()
        # Its work is additions on rows of memory, and the cores are the workers', unless it has some of its own.
        torch.set_num_threads(threads)
        # The first optimizer of a process imports torch's compiler, for seconds that are no trial's.
        torch.optim.SGD([torch.zeros(1)])
        self._listener = Listener(Server(name), ray.util.get_node_ip_address(), token)

    def address(self) -> Address:
        """Where it listens."""
        return self._listener.address


class Servers:
    """A gang's parameter servers, as one of its workers sees them. All workers call all methods, in the same order.

    Rank 0 starts them, outside the gang's placement group, and they end with it. They serve one training after another.
    Those beside workers are others than those that may be anywhere.

    Args:
        rank: of this worker.
        resources: what each asks Ray for, beside what the workers have; nothing, if nothing is said.
    """

    def __init__(self, rank: int, resources: Mapping[str, float] | None = None) -> None:
        self._rank = rank
        self._resources = dict(resources or {})
        self._anywhere, self._beside = _Pool(), _Pool()

    def start(self, count: int, nodes: Sequence[str] | None = None) -> None:
        """Begins to start those of the first `count` servers that are missing; `links` waits for them.

        Args:
            count: how many.
            nodes: Ray's ids of the nodes that they have to be on, by their number; None: any.
        """
        if self._rank:
            return
        pool, threads = self._pool(nodes), max(1, int(self._resources.get("CPU", 1)))
        for number in range(len(pool.actors), count):
            where: Any = "DEFAULT" if nodes is None else NodeAffinitySchedulingStrategy(nodes[number], soft=False)
            # Whose resources are only a number of things has them under a name of its own in Ray.
            others = {name: amount for name, amount in self._resources.items() if name not in _NAMED}
            named: dict[str, Any] = {_NAMED[name]: self._resources[name] for name in _NAMED if name in self._resources}
            options = {"num_cpus": 0, **named, "resources": others, "scheduling_strategy": where}
            actor: Any = ray.remote(ServerActor).options(**options)
            pool.actors.append(actor.remote(_name(number, nodes), secrets.token_bytes(32), threads))

    def links(
        self, count: int, share: Callable[[Any], Any], nodes: Sequence[str] | None = None
    ) -> Sequence[SocketLink]:
        """Links to the first `count` servers; those that are missing are started.

        Args:
            count: how many.
            share: gives every worker what rank 0 hands in.
            nodes: see `start`.

        Raises:
            GangError: one did not start.
        """
        pool = self._pool(nodes)
        if count > len(pool.links):
            self.start(count, nodes)
            addresses = share(self._addresses(count, nodes) if self._rank == 0 else None)
            if isinstance(addresses, str):
                raise GangError(addresses)
            pool.links += [SocketLink(address, self._rank) for address in addresses]
        return pool.links[:count]

    @property
    def pids(self) -> list[int]:
        """Process ids of the servers, each on its own node."""
        return [link.address.pid for pool in (self._anywhere, self._beside) for link in pool.links]

    def close(self) -> None:
        """Ends connections and servers."""
        for pool in (self._anywhere, self._beside):
            for link in pool.links:
                link.close()
            for actor in pool.actors:
                ray.kill(actor)
        self._anywhere, self._beside = _Pool(), _Pool()

    def _pool(self, nodes: Sequence[str] | None) -> _Pool:
        return self._anywhere if nodes is None else self._beside

    def _addresses(self, count: int, nodes: Sequence[str] | None) -> list[Address] | str:
        """Addresses of the servers up to `count` that there are no links to yet; or why there are none."""
        pool = self._pool(nodes)
        missing = range(len(pool.links), count)
        try:
            addresses: list[Address] = ray.get(
                [pool.actors[number].address.remote() for number in missing], timeout=START_SECONDS
            )
        except GetTimeoutError:
            asks = f"; each asks for {self._resources} beside the workers: see `ray status`" if self._resources else ""
            return f"{_names(missing, nodes)} did not start within {START_SECONDS:g} s{asks}"
        except Exception as error:
            return f"{_names(missing, nodes)} did not start: {type(error).__name__}: {error}"
        return addresses


@dataclass(slots=True)
class _Pool:
    """Servers of one placement, on rank 0, and the links to them."""

    actors: list[Any] = field(default_factory=list)
    links: list[SocketLink] = field(default_factory=list)


def _names(numbers: Iterable[int], nodes: Sequence[str] | None) -> str:
    return ", ".join(_name(number, nodes) for number in numbers)


def _name(number: int, nodes: Sequence[str] | None) -> str:
    return f"parameter server {number}" + ("" if nodes is None else f" beside rank {number}")
