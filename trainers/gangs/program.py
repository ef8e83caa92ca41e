"""`Program`, the interface of a worker's work, and the worker's place in its gang."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainers.gangs.messages import Assignment, Report, Segment
from trainers.patient_storage import PatientStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """Where a worker stands in its gang.

    Args:
        rank: 0 to `world_size` - 1; fixed for an incarnation, and what shards are dealt by.
        world_size: workers in the gang.
        node_ip: address of this worker's node.
        cpus: processor cores the worker may use.
        broadcast: gives every rank what rank 0 hands in (small values; every rank has to call it).
        in_hand: it is the user's own process, in which nothing may be changed that the user could notice.
        storage: where its checkpoints are read and written.
        gpus: the numbers under which CUDA knows its GPUs in this process; none where it holds none, or in hand.
        local_rank: among the gang's workers on its node, 0 to `local_world_size` - 1.
        local_world_size: the gang's workers on its node.
        node_rank: of its node among those that the gang is on.
    """

    rank: int
    world_size: int
    node_ip: str
    cpus: int
    broadcast: Callable[[Any], Any]
    in_hand: bool = False
    storage: PatientStorage = field(default_factory=PatientStorage)
    gpus: tuple[int, ...] = ()
    local_rank: int = 0
    local_world_size: int = 1
    node_rank: int = 0


def never() -> bool:
    """Nobody halts it."""
    return False


class Program(Protocol):
    """Program of a gang's workers; it is pickled to the workers and opened there once."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Loads this worker's shards and joins its peers; returns the seconds each step took."""

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Serves one assignment; every rank calls it, rank 0's reports and segment are the gang's.

        Args:
            assignment: what is to be trained.
            on_report: is told of each report.
            halted: asked before a report, on rank 0: whether the assignment is to end with it. All ranks then end at
                the same report, and the segment is as one of an assignment until there.

        Raises:
            DivergedError: the trial's numbers are not finite any more; every rank has it alike.
            GangError: what the gang needs beside its workers is gone: it starts again and serves the assignment again.
            StorageError: its checkpoint cannot be read; UnsavedError: on rank 0, the new one cannot be written.
            CheckpointError: its checkpoint is not what was written: the trial is trained again from the beginning.
            BrokenWorkerError: the trial's own error, which has broken this worker's process: the gang starts again.
            Exception: the trial's own error, which every rank has alike.
        """

    def close(self) -> None:
        """Leaves the peers."""


def sees_peers_gpus(program: Program) -> bool:
    """Whether a worker is to see the GPUs of all the gang's workers on its node, as NCCL's peer access takes it.

    A program says so with an attribute `peers_gpus`; its workers then have to train on their own, `WorkerContext.gpus`.
    """
    return bool(getattr(program, "peers_gpus", False))


def seconds_to_end(program: Program) -> float:
    """Return the seconds that a program may take to end what it serves, beside those of every gang.

    A program says so with an attribute `end_seconds`.
    """
    return float(getattr(program, "end_seconds", 0.0))


def output_of(program: Program) -> str:
    """Return where the output of the trial is that a program served last, as "address:path"; empty where it has none.

    A program says so with an attribute `output`.
    """
    return str(getattr(program, "output", ""))
