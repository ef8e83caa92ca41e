"""The program of a PyTorch gang's workers: data and process group are kept, a function runs for each trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch

from trainers.channels import PlacedChannel
from trainers.errors import BrokenWorkerError, GangError, UnsavedError
from trainers.gangs import Assignment, Report, Segment, WorkerContext, never, one_line
from trainers.pytorch.data import Held, Room, Worker, held
from trainers.pytorch.devices import breaks, collect, forget, tidy
from trainers.pytorch.distribution import Distribution, Peers
from trainers.pytorch.function import TrainFunction
from trainers.pytorch.gradients import Alone, ProcessGroup
from trainers.pytorch.layouts import Parts
from trainers.pytorch.measures import Profiling
from trainers.pytorch.segment import train_segment
from trainers.pytorch.state import Models, Precision, switches


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSettings:
    """A trainer's settings for its function.

    Args:
        function: the user's.
        use_gpu: each worker trains on a GPU.
        precision: "fp32" or "bf16".
        compile: whether models are compiled.
        report_timeout_s: how long the function may train without a report, and workers wait for each other.
        elastic: a trial may go on with another number of workers.
        profiling: which trials are profiled.
        steps: updates in a unit of resource; None: those of an epoch.
    """

    function: TrainFunction
    use_gpu: bool
    precision: str = "fp32"
    compile: bool = False
    report_timeout_s: float
    elastic: bool = False
    profiling: Profiling | None = None
    steps: int | None = None


class Distributing(Protocol):
    """Factory of a gang's distributions, one a trial; opened once a gang, on every worker."""

    def open(self, context: WorkerContext) -> None:
        """Begins to start what lasts as long as the gang, and is not waited for."""

    def join(self, peers: Peers, device: torch.device) -> None:
        """Waits for it, with all workers, each of which trains on a device."""

    def parts(self, assignment: Assignment, peers: Peers) -> Parts:
        """The workers as the layout of an assignment groups them."""

    def distribution(self, assignment: Assignment, parts: Parts, updates: int) -> Distribution:
        """The distribution of one assignment; each worker took part in so many updates of the trial before it."""

    def forget(self) -> None:
        """Lets go of all groups of workers, which are about to be left, since an assignment failed."""

    def close(self) -> None:
        """Ends what `open` started."""


class FunctionProgram:
    """Trains functions, on data and a process group that last as long as the gang; see `trainers.gangs.Program`.

    Args:
        channels: what each worker reads its shard of.
        settings: of the function.
        distributing: how gradients become updates.
    """

    def __init__(
        self, channels: Mapping[str, PlacedChannel], settings: FunctionSettings, distributing: Distributing
    ) -> None:
        self._channels = channels
        self._settings = settings
        self._distributing = distributing
        self._context: WorkerContext | None = None
        self._worker: Worker | None = None
        self._peers: Alone | ProcessGroup | None = None
        self._room: Room | None = None
        self._dealt: tuple[int, Worker] | None = None
        """With the rows of one of so many parts, the last that was not one worker each."""
        self.peers_gpus = settings.use_gpu
        """See `trainers.gangs.sees_peers_gpus`."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Loads this worker's rows onto its device and joins the process group."""
        began = time.perf_counter()
        self._distributing.open(context)
        # The first optimizer of a process imports torch's compiler, for seconds that are no trial's.
        torch.optim.SGD([torch.zeros(1)])
        started = time.perf_counter()
        self._context = context
        device = device_of(self._settings, context)
        Precision(self._settings.precision).check(device)
        # Before joining: a rank whose data is bad then leaves no peer waiting in a collective.
        self._room = Room.of(device)
        shards = held(self._channels, [context.rank], context.world_size, self._room)
        loaded = time.perf_counter()
        if not context.in_hand:
            torch.set_num_threads(context.cpus)
        peers = Alone() if context.in_hand else ProcessGroup(context, device, self._settings.report_timeout_s)
        self._peers = peers
        all_rows = peers.gather((context.node_ip, {name: len(shard) for name, shard in shards.items()}))
        neighbours = sum(node == context.node_ip for node, _ in all_rows)
        self._worker = worker_of(self._settings, device, shards, [rows for _, rows in all_rows], neighbours)
        self._distributing.join(peers, device)
        return {"import": started - began, "load": loaded - started, "join": time.perf_counter() - loaded}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Runs the function from the assignment's checkpoint to its rung; see `Program.train`."""
        context, worker, peers = self._context, self._worker, self._peers
        assert context is not None, "a gang opens its program before it serves"
        assert worker is not None
        assert peers is not None
        if isinstance(peers, ProcessGroup):
            peers.ready()
        try:
            with threads(context), switches.kept():
                return self._segment(assignment, context, worker, peers, on_report, halted)
        except (GangError, UnsavedError):
            raise  # Peers have done their part, or are gone.
        except Exception as error:
            if isinstance(peers, ProcessGroup):
                first = peers.failed(error, partial(self._forget, error))
            else:
                forget(first := error)
            if breaks(error, worker.device):
                raise BrokenWorkerError(one_line(first)) from error
            if first is not error:
                raise first from error
            raise
        finally:
            tidy(worker.device)

    def _forget(self, error: Exception) -> None:
        """Lets go of a trial: a connection that is held would keep peers waiting in a collective."""
        self._distributing.forget()
        forget(error)
        collect()

    def _segment(
        self,
        assignment: Assignment,
        context: WorkerContext,
        worker: Worker,
        peers: Peers,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> Segment:
        """Runs the function for one assignment."""
        parts = self._distributing.parts(assignment, peers)
        return train_segment(
            self._settings.function,
            assignment,
            self._with_rows(worker, parts),
            parts,
            partial(self._distributing.distribution, assignment, parts),
            on_report,
            halted,
            report_timeout_s=self._settings.report_timeout_s,
            place=context.storage,
            profiling=self._settings.profiling,
        )

    def _with_rows(self, worker: Worker, parts: Parts) -> Worker:
        """The worker with the rows of its data-parallel part, which the next trial of such a layout finds again."""
        data = parts.data
        if data.world_size == parts.gang.world_size:
            return worker
        if self._dealt is None or self._dealt[0] != data.world_size:
            self._dealt = None  # Before others are loaded: they take as much memory.
            assert self._room is not None, "a gang opens its program before it serves"
            # Channels are dealt out to the gang row by row: these ranks have the rows of a smaller gang's worker.
            ranks = range(data.rank, parts.gang.world_size, data.world_size)
            shards = held(self._channels, ranks, parts.gang.world_size, self._room.rest())
            rows = data.gather({name: len(shard) for name, shard in shards.items()})
            self._dealt = data.world_size, worker_of(self._settings, worker.device, shards, rows, worker.neighbours)
        return self._dealt[1]

    def close(self) -> None:
        """Leaves the process group."""
        self._distributing.close()
        if isinstance(self._peers, ProcessGroup):
            self._peers.close()
        self._worker = self._peers = self._dealt = None


def device_of(settings: FunctionSettings, context: WorkerContext) -> torch.device:
    """The device of a worker."""
    if not settings.use_gpu:
        return torch.device("cpu")
    if context.in_hand:
        return torch.device("cuda")
    from ray.train.torch import get_device

    device: torch.device = get_device()
    torch.cuda.set_device(device)
    return device


def worker_of(
    settings: FunctionSettings,
    device: torch.device,
    shards: Mapping[str, Held],
    rows: Sequence[Mapping[str, int]],
    neighbours: int = 1,
) -> Worker:
    """The worker's parts for every trial; `rows` of each channel, by rank."""
    return Worker(
        device=device,
        shards=shards,
        shard_rows={name: tuple(of[name] for of in rows) for name in shards},
        neighbours=neighbours,
        models=Models(precision=settings.precision, compile=settings.compile),
        elastic=settings.elastic,
        steps=settings.steps,
    )


@contextmanager
def threads(context: WorkerContext) -> Iterator[None]:
    """As many threads as the worker has cores, in the user's own process only meanwhile."""
    if not context.in_hand:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(context.cpus)
    try:
        yield
    finally:
        torch.set_num_threads(before)
