"""The ring of a gang's workers over sockets."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from trainers.parameter_server.flat import raw
from trainers.parameter_server.ring.replica import Replica
from trainers.parameter_server.server import Line, Listener
from trainers.parameter_server.wire import Address, Answer, Ask, SocketLink, Stream

_LARGEST = 1 << 20
"""Bytes that are thrown away at once where nobody wants them."""


class Ring:
    """A worker's place on the ring, for as long as its gang: lets neighbours in to its replica, and reaches theirs.

    Args:
        rank: of this worker.
        host: the address that neighbours reach it at.
    """

    def __init__(self, rank: int, host: str) -> None:
        self.name = f"rank {rank}"
        self._rank = rank
        self._replica: Replica | str = f"{self.name} trains nothing"
        self._lock = threading.Lock()
        self._listener = Listener(self, host, secrets.token_bytes(32), _Visitor)
        self._neighbours: list[SocketNeighbour] | None = None

    @property
    def address(self) -> Address:
        """Where neighbours reach this worker."""
        return self._listener.address

    def join(self, addresses: Sequence[Address]) -> None:
        """Takes its place among all workers, whose addresses these are, by rank."""
        self._neighbours = [SocketNeighbour(addresses[rank], self._rank) for rank in beside(self._rank, len(addresses))]

    @property
    def neighbours(self) -> Sequence[SocketNeighbour]:
        """The ways to both of them."""
        assert self._neighbours is not None, "a worker joins the ring before it trains"
        return self._neighbours

    def publish(self, replica: Replica | str) -> None:
        """Lets neighbours in to a replica; a text lets none in any more, and is told to who comes."""
        with self._lock:
            self._replica = replica

    @property
    def replica(self) -> Replica | str:
        """What neighbours average with; or why they cannot."""
        with self._lock:
            return self._replica

    def close(self) -> None:
        """Leaves the ring."""
        for neighbour in self._neighbours or ():
            neighbour.close()
        self._listener.close()


def beside(rank: int, workers: int) -> list[int]:
    """The neighbours of a worker: the one before it and the one behind it, once where that is the same."""
    return sorted({(rank - 1) % workers, (rank + 1) % workers} - {rank})


class SocketNeighbour(SocketLink):
    """See `trainers.parameter_server.ring.Neighbour`."""

    def enter(self, patience: float, mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
        """See `Neighbour.enter`."""
        self._enter(patience, mine, theirs)

    def average(self) -> None:
        """See `Neighbour.average`."""
        self._ask(Ask.PUSH, 1, buffers=self._gradients)
        self.pull()


class _Visitor:
    """A neighbour that is connected."""

    def __init__(self, ring: Ring, stream: Stream, rank: int) -> None:
        self._ring = ring
        self._stream = stream
        self._of: Replica | None = None
        self._theirs: list[Tensor] = []
        self._before: list[Tensor] = []

    def serve(self) -> None:
        """Averages until the neighbour is gone."""
        while True:
            _, _, size, follows = self._stream.receive()
            self._stream.note(size)
            replica = self._ring.replica
            if isinstance(replica, str):
                self._refuse(replica, follows)
                continue
            if follows != replica.bytes:
                self._refuse(f"{self._ring.name} trains another model", follows)
                continue
            if replica is not self._of:
                self._of = replica
                self._theirs, self._before = ([torch.empty_like(of) for of in replica.values] for _ in range(2))
            for buffer in self._theirs:
                self._stream.fill(raw(buffer))
            _carry(replica, replica.up)
            replica.visit(self._theirs, self._before)
            _carry(replica, replica.down)
            self._stream.send(Answer.DONE, buffers=[raw(buffer) for buffer in self._before])

    def _refuse(self, why: str, follows: int) -> None:
        while follows:
            part = memoryview(bytearray(min(follows, _LARGEST)))
            self._stream.fill(part)
            follows -= len(part)
        self._stream.send(Answer.TRIAL, note=why.encode())


def _carry(replica: Replica, line: Line) -> None:
    """Waits until a replica would have come over a line."""
    with replica.lock:
        now = time.monotonic()
        seconds = line.carry(replica.bytes, now) - now
    if seconds > 0:
        time.sleep(seconds)
