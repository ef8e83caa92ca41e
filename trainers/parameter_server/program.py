"""The program of a parameter-server gang's workers, and its simulation in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from trainers.channels import PlacedChannel
from trainers.gangs import WORKERS, Assignment, Report, Segment, WorkerContext, never
from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.server import Servers
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.simulation import simulate
from trainers.pytorch import (
    Distribution,
    FunctionSettings,
    Parts,
    Peers,
    TorchCheckpoint,
    Worker,
    device_of,
    held,
    switches,
    threads,
    train_segment,
    worker_of,
)

if TYPE_CHECKING:
    import torch


class Serving:
    """Distributions over a gang's own servers; see `trainers.pytorch.program.Distributing`.

    Args:
        patience_s: how long workers wait for each other, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._servers: Servers | None = None

    def open(self, context: WorkerContext) -> None:
        """The first server is started with the gang: nearly every trial needs it, and its start takes seconds."""
        self._servers = Servers(context.rank)
        self._servers.start(1)

    def join(self, peers: Peers, device: torch.device) -> None:
        """See `Distributing.join`."""
        assert self._servers is not None, "a gang opens before it joins"
        self._servers.links(1, _first(peers))

    def parts(self, assignment: Assignment, peers: Peers) -> Parts:
        """See `Distributing.parts`."""
        return Parts.replicas(peers)

    def distribution(self, assignment: Assignment, parts: Parts, updates: int) -> Distribution:
        """See `Distributing.distribution`."""
        peers = parts.gang
        assert self._servers is not None, "a gang opens its program before it serves"
        settings = Settings.of(assignment.hyperparameters, peers.world_size)
        return ServerDistribution(
            peers=peers,
            links=self._servers.links(settings.num_servers, _first(peers)),
            settings=settings,
            seed=assignment.seed,
            start=updates,
            patience=self._patience_s,
        )

    def forget(self) -> None:
        """See `Distributing.forget`: of groups there is the gang's alone."""

    def close(self) -> None:
        """Ends the servers."""
        if self._servers is not None:
            self._servers.close()


def _first(peers: Peers) -> Callable[[Any], Any]:
    """What rank 0 hands in, for every worker."""
    return lambda value: peers.gather(value)[0]


class SimulatedProgram:
    """Simulates a gang and its servers in this process; see `trainers.gangs.Program`.

    Args:
        channels: placed for this process; each simulated worker reads its shard of them.
        settings: of the function.
    """

    def __init__(self, channels: Mapping[str, PlacedChannel], settings: FunctionSettings) -> None:
        self._channels = channels
        self._settings = settings
        self._context: WorkerContext | None = None
        self._workers: dict[int, list[Worker]] = {}

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Loads the rows as one worker has them; for others they are dealt out when a trial asks for that many."""
        started = time.perf_counter()
        self._context = context
        self._dealt(1)
        return {"load": time.perf_counter() - started}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Runs the function on every simulated worker, from the assignment's checkpoint to its rung."""
        assert self._context is not None, "a gang opens its program before it serves"
        count = int(assignment.hyperparameters.get(WORKERS) or 1)
        workers = self._dealt(count)
        place = self._context.storage
        read = partial(place.read, manifest=assignment.manifest)
        resumed = TorchCheckpoint.read(assignment.checkpoint, read) if assignment.checkpoint else None

        def work(peers: Peers, distribution: Distribution) -> Segment:
            return train_segment(
                self._settings.function,
                assignment,
                workers[peers.rank],
                Parts.replicas(peers),
                lambda updates: distribution,
                on_report if peers.rank == 0 else lambda report: None,
                halted if peers.rank == 0 else never,
                report_timeout_s=self._settings.report_timeout_s,
                place=place,
            )

        with threads(self._context), switches.kept():
            return simulate(
                work,
                Settings.of(assignment.hyperparameters, count),
                seed=assignment.seed,
                starts=[resumed.updates] * count if resumed else None,
            )[0]

    def close(self) -> None:
        """Lets go of the rows."""
        self._workers.clear()

    def _dealt(self, count: int) -> list[Worker]:
        """So many workers, each with its shard."""
        assert self._context is not None
        if count not in self._workers:
            device = device_of(self._settings, self._context)
            shards = [held(self._channels, [rank], count, device) for rank in range(count)]
            rows = [{name: len(shard) for name, shard in of.items()} for of in shards]
            self._workers[count] = [worker_of(self._settings, device, of, rows) for of in shards]
        return self._workers[count]
