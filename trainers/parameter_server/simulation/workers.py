"""Simulated workers and servers in one process: the real code, in the order of a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from trainers.errors import TrialError, WarmbandError
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.opening import Opening, Options
from trainers.parameter_server.ring import Replica, RingDistribution, beside
from trainers.parameter_server.server import Line, Server, Session
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.simulation.virtual_time import Baton
from trainers.pytorch import Distribution, Peers

T = TypeVar("T")

STEP_SECONDS = 0.001
"""What a step takes on the virtual clock, give or take `JITTER` of it; delays come on top."""

JITTER = 0.1


def simulate(
    worker: Callable[[Peers, Distribution], T], settings: Settings, *, seed: int, starts: Sequence[int] | None = None
) -> list[T]:
    """Runs the workers of one trial in this process, one at a time, against servers in the same process.

    Each runs until its next push or its next wait; whose turn it is then, a virtual clock says. So the order depends on
    settings and seed alone, and the same seed gives the same bytes. Worker 0 runs in the calling thread. Each worker
    has random states of its own (of Python, NumPy and PyTorch), all as the caller's are; those come back at the end.

    Args:
        worker: what each worker does.
        settings: how many workers there are, and how their pushes become updates.
        seed: of the virtual clock and of delays.
        starts: pushes that each worker made in the trial's earlier segments (`ServerDistribution.pushes`).

    Returns:
        What each worker returned, by rank.

    Raises:
        BaseException: what the first worker that failed raised; the others are ended.
    """
    baton = Baton(settings.workers, seed)
    servers = [Server(f"parameter server {index}", baton) for index in range(settings.num_servers)]
    ring: dict[int, Replica | str] = {}
    circle = _Circle(baton, settings.workers)
    results: dict[int, T] = {}

    def work(rank: int) -> None:
        peers = _SimulatedPeers(circle, rank, settings.workers)
        start, clock = starts[rank] if starts else 0, _VirtualClock(baton, rank)
        distribution: Distribution
        if settings.mode == "ring":
            distribution = RingDistribution(
                peers=peers,
                neighbours=[DirectNeighbour(ring, other, rank, baton) for other in beside(rank, settings.workers)],
                publish=partial(ring.__setitem__, rank),
                settings=settings,
                seed=seed,
                start=start,
                clock=clock,
                patience=0.0,
            )
        else:
            distribution = ServerDistribution(
                peers=peers,
                links=[DirectLink(server, rank, baton) for server in servers],
                settings=settings,
                seed=seed,
                start=start,
                clock=clock,
                patience=0.0,
            )
        results[rank] = worker(peers, distribution)

    baton.run(work)
    return [results[rank] for rank in range(settings.workers)]


class _VirtualClock:
    """One worker's time; steps take about `STEP_SECONDS` of it."""

    name = "simulated"

    def __init__(self, baton: Baton, rank: int) -> None:
        self._baton = baton
        self._rank = rank

    def now(self) -> float:
        """See `Clock.now`."""
        return self._baton.levelled + self._baton.times[self._rank]

    def step(self, number: int, delay: float) -> None:
        """See `Clock.step`."""
        jitter = random.Random(f"{self._baton.seed}/{self._rank}/{number}/step").uniform(-JITTER, JITTER)
        self._baton.step(self._rank, STEP_SECONDS * (1 + jitter) + delay)

    def level(self) -> None:
        """See `Clock.level`."""
        self._baton.level()


class DirectLink:
    """A worker's link to a server in the same process; see `Link`."""

    def __init__(self, server: Server, rank: int, baton: Baton) -> None:
        self.name = server.name
        self._server = server
        self._rank = rank
        self._baton = baton
        self._session: Session | None = None
        self._gradients: Sequence[Tensor] = ()
        self._values: Sequence[Tensor] = ()
        self._met = False
        self._left = False

    def begin(self, opening: Opening, gradients: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """See `Link.begin`."""
        self._gradients, self._values = gradients, values
        self._session = self._server.begin(Opening.unpack(opening.pack()))

    def join(self, session: str, patience: float, gradients: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """See `Link.join`."""
        self._gradients, self._values = gradients, values
        self._session = self._server.join(session)

    def push(self, rows: int, options: Options | None) -> None:
        """See `Link.push`."""
        session = self._joined()
        self._met = False
        if rows:
            for mine, gradients in zip(session.desks[self._rank].gradients, self._gradients, strict=True):
                mine.copy_(gradients)
        self._carry(session.up, session.bytes if rows else 0)
        self._server.push(session, self._rank, rows, options)

    def clip(self, norm: float) -> None:
        """See `Link.clip`."""
        self._server.clip(self._joined(), norm)

    def meet(self, waited: float) -> None:
        """See `Link.meet`."""
        session = self._joined()
        self._met = True
        before = session.pacing.meetings
        self._server.meet(session, self._rank, waited)
        if session.pacing.meetings > before:
            self._baton.level()
            session.up.clear()
            session.down.clear()

    def pull(self) -> bytes:
        """See `Link.pull`."""
        session = self._joined()
        if norm := self._server.pull(session, self._rank, self._met):
            return norm
        if not self._met:
            self._carry(session.down, session.bytes)
        for values, mine in zip(self._values, session.desks[self._rank].values, strict=True):
            values.copy_(mine)
        return session.met_state if self._met and self._rank == 0 else b""

    def account(self) -> dict[str, Any]:
        """See `Link.account`."""
        return self._server.account(self._joined())

    def leave(self, failure: WarmbandError) -> None:
        """See `Link.leave`."""
        if self._session is not None and not self._left:
            self._left = True
            self._server.gone(self._session, self._rank, failure)

    def _carry(self, line: Line, size: int) -> None:
        carry(self._baton, self._rank, line, size)

    def _joined(self) -> Session:
        assert self._session is not None
        return self._session


class DirectNeighbour:
    """A worker's way to a neighbour in the same process; see `trainers.parameter_server.ring.Neighbour`."""

    def __init__(self, ring: Mapping[int, Replica | str], other: int, rank: int, baton: Baton) -> None:
        self._ring = ring
        self._other = other
        self._rank = rank
        self._baton = baton
        self._mine: Sequence[Tensor] = ()
        self._theirs: Sequence[Tensor] = ()

    def enter(self, patience: float, mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
        """See `Neighbour.enter`."""
        self._mine, self._theirs = mine, theirs

    def average(self) -> None:
        """See `Neighbour.average`."""
        replica = self._ring[self._other]
        if isinstance(replica, str):
            raise TrialError(replica)
        carry(self._baton, self._rank, replica.up, replica.bytes)
        replica.visit(self._mine, self._theirs)
        carry(self._baton, self._rank, replica.down, replica.bytes)


def carry(baton: Baton, rank: int, line: Line, size: int) -> None:
    """Lets the time of a worker pass that so many bytes take over a line; others may be due meanwhile."""
    now = baton.times[rank]
    seconds = line.carry(size, now) - now
    if seconds:
        baton.step(rank, seconds)


class _Circle:
    """Where simulated workers meet: each call of one is answered when all have made theirs."""

    def __init__(self, baton: Baton, workers: int) -> None:
        self._baton = baton
        self._calls = [0] * workers
        self._rounds: dict[int, dict[int, tuple[str, Any]]] = {}

    def gather(self, rank: int, what: str, value: Any) -> list[Any]:
        """Each worker's value, by rank.

        Raises:
            TrialError: another worker is elsewhere, or has ended.
        """
        number = self._calls[rank]
        self._calls[rank] += 1
        self._rounds.pop(number - 1, None)
        here = self._rounds.setdefault(number, {})
        for other, (elsewhere, _) in here.items():
            if elsewhere != what:
                raise TrialError(
                    f"rank {rank} came to {what}, and rank {other} to {elsewhere}; every rank has to call the same"
                )
        here[rank] = (what, value)
        self._baton.notify_all()
        if not self._baton.wait_for(lambda: len(here) == len(self._calls)):
            missing = [other for other in range(len(self._calls)) if other not in here]
            raise TrialError(f"rank {rank} waited in vain in {what} for ranks {missing}; every rank has to call it")
        return [here[other][1] for other in range(len(self._calls))]


class _SimulatedPeers:
    """The other simulated workers, as one of them sees them; see `Peers`."""

    def __init__(self, circle: _Circle, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self._circle = circle

    def sum(self, values: Tensor) -> Tensor:
        """See `Peers.sum`; in the order of ranks."""
        first, *others = self._circle.gather(self.rank, "a sum", values.detach().clone())
        total: Tensor = first.clone()
        for other in others:
            total += other
        return total

    def broadcast(self, values: Tensor) -> None:
        """See `Peers.broadcast`."""
        first = self._circle.gather(self.rank, "a broadcast", values.detach().clone() if self.rank == 0 else None)[0]
        with torch.no_grad():
            values.copy_(first)

    def gather(self, value: Any) -> list[Any]:
        """See `Peers.gather`."""
        return self._circle.gather(self.rank, "a gathering", value)

    def meet(self, what: str, answer: bool = False) -> bool:
        """See `Peers.meet`."""
        return bool(self._circle.gather(self.rank, what, answer)[0])
