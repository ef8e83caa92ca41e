"""Environment of a worker's process while it has a process group: torchrun's variables, and the network to use."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from trainers.gangs import WorkerContext
from trainers.pytorch.gradients.interface import interface_of


def variables(context: WorkerContext, address: str, port: int) -> dict[str, str]:
    """What `torchrun` tells a process, and libraries that look for a process group ask for.

    Source: https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables; `NODE_RANK` is Ray Train's.

    Args:
        context: of the worker.
        address: of rank 0's node.
        port: one on it that is free, for a further group of the user's.
    """
    return {
        "RANK": str(context.rank),
        "WORLD_SIZE": str(context.world_size),
        "LOCAL_RANK": str(context.local_rank),
        "LOCAL_WORLD_SIZE": str(context.local_world_size),
        "NODE_RANK": str(context.node_rank),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }


def network(node_ip: str) -> dict[str, str]:
    """The interface to use, where the user has not named one.

    Else gloo listens where the host's name leads, which on many machines is their own loopback, and NCCL on the first
    interface that it finds, which may be a container's bridge.
    """
    interface = interface_of(node_ip)
    # To NCCL a name without "=" is the beginning of one.
    named = {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": f"={interface}"} if interface else {}
    return {name: value for name, value in named.items() if name not in os.environ}


def free_port(address: str) -> int:
    """A TCP port that nobody listens on, on this machine."""
    with socket.socket() as asked:
        asked.bind((address, 0))
        port: int = asked.getsockname()[1]
        return port


class Environment:
    """Variables of this process for a while.

    Args:
        values: by name; they go before what is set.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)

    def restore(self) -> None:
        """Sets them to what they were before; a second call does nothing."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
