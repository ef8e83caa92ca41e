"""Peers: the workers of a gang tell each other addresses, ends and failures of a program's parts."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, wait
from typing import Any

from trainers.errors import GangError
from trainers.gangs import WorkerContext

JOIN_SECONDS = 60.0
"""How long workers wait for each other when a gang opens."""


@dataclass(frozen=True, slots=True)
class _Gathered:
    """A value for `Peers.gathered`, among whatever else is said."""

    value: Any


class Peers:
    """A star around rank 0: what the others say goes to it, and what it says to all others.

    Messages are small, in the order in which they were sent. A worker alone has no peers, and says nothing.

    Args:
        context: the worker's.

    Raises:
        GangError: they do not find each other.
    """

    def __init__(self, context: WorkerContext) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self._others: dict[int, Connection] = {}
        """Of rank 0, a connection to each other; of each other, one to rank 0."""
        if self.world_size == 1:
            return
        try:
            if self.rank == 0:
                self._listen(context)
            else:
                address, key = context.broadcast(None)
                self._others[0] = Client(tuple(address), authkey=key)
                self._others[0].send(self.rank)
        except (OSError, EOFError) as error:
            raise GangError(f"the workers of a gang do not find each other: {error}") from error

    def _listen(self, context: WorkerContext) -> None:
        key = os.urandom(32)
        came: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        with Listener((context.node_ip, 0), backlog=self.world_size, authkey=key) as listener:
            context.broadcast((listener.address, key))
            threading.Thread(target=_accept, args=(listener, self.world_size - 1, came), daemon=True).start()
            while len(self._others) < self.world_size - 1:
                try:
                    connection = came.get(timeout=JOIN_SECONDS)
                except queue.Empty:
                    raise GangError(f"waited {JOIN_SECONDS:.0f} s for a gang's workers to find each other") from None
                if not connection.poll(JOIN_SECONDS):
                    raise GangError(f"a worker said nothing for {JOIN_SECONDS:.0f} s when its gang opened")
                self._others[connection.recv()] = connection

    def say(self, message: Any) -> None:
        """Rank 0 tells all others, and each other rank 0.

        Raises:
            GangError: one is gone.
        """
        for rank, connection in self._others.items():
            try:
                connection.send(message)
            except OSError as error:
                raise _gone(rank) from error

    def heard(self, seconds: float = 0.0) -> list[tuple[int, Any]]:
        """Messages that have come, each behind its sender's rank; waits up to `seconds` for the first.

        Raises:
            GangError: one is gone.
        """
        ranks = {connection: rank for rank, connection in self._others.items()}
        messages = []
        for connection in wait(list(ranks), seconds) if ranks else ():
            assert isinstance(connection, Connection)
            try:
                messages.append((ranks[connection], connection.recv()))
            except (OSError, EOFError) as error:
                raise _gone(ranks[connection]) from error
        if not ranks and seconds:
            time.sleep(seconds)
        return messages

    def gathered(self, value: Any, seconds: float, what: str) -> list[Any]:
        """The values of all ranks, on each of them; every rank has to call it.

        What else a rank has said, such as that its part ended while rank 0 decided so, is not heard any more.

        Args:
            value: this rank's.
            seconds: to wait for the others'.
            what: names what is waited for, in an error.

        Raises:
            GangError: one is gone, or said nothing.
        """
        if self.world_size == 1:
            return [value]
        deadline = time.monotonic() + seconds
        if self.rank:
            self.say(_Gathered(value))
            while not (answers := self.heard(min(1.0, max(0.0, deadline - time.monotonic())))):
                if time.monotonic() >= deadline:
                    raise GangError(f"waited {seconds:.0f} s for {what} of worker 0, and it said nothing")
            return list(answers[0][1])
        values = {0: value}
        while len(values) < self.world_size:
            for rank, message in self.heard(min(1.0, max(0.0, deadline - time.monotonic()))):
                if isinstance(message, _Gathered):
                    values[rank] = message.value
            if len(values) < self.world_size and time.monotonic() >= deadline:
                missing = [str(rank) for rank in range(self.world_size) if rank not in values]
                raise GangError(f"waited {seconds:.0f} s for {what} of worker {', '.join(missing)}: nothing was said")
        every: Sequence[Any] = [values[rank] for rank in range(self.world_size)]
        self.say(every)
        return list(every)

    def close(self) -> None:
        """Leaves them."""
        for connection in self._others.values():
            connection.close()
        self._others.clear()


def free_ports(count: int) -> tuple[int, ...]:
    """Ports of this machine that nothing listens to; another process may take one before it is used."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("", 0))
        return tuple(each.getsockname()[1] for each in sockets)


def _accept(listener: Listener, count: int, came: queue.SimpleQueue[Connection]) -> None:
    """In a thread, since it has no deadline; a listener that is closed ends it."""
    with suppress(OSError, EOFError, AuthenticationError):
        for _ in range(count):
            came.put(listener.accept())


def _gone(rank: int) -> GangError:
    return GangError(f"worker {rank} of the gang is gone")
