"""A gang of plain processes: a program's workers without Ray, for what many workers compute together."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import time
import traceback
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import psutil
from ray import cloudpickle

from trainers.gangs.in_process import alone
from trainers.gangs.messages import Assignment, Report, Segment
from trainers.gangs.program import Program, WorkerContext

SECONDS = 120.0


def warm_context() -> Any:
    """Return a context that forks processes from one that has only the slow imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.warm", "tests.support.process_gang"])
    return context


class ProcessGang:
    """Workers that open a program, serve its assignments and close it, as often as asked; their imports happen once."""

    def __init__(self, workers: int, folder: str) -> None:
        self.workers = workers
        self._folder = folder
        self._pipes: list[Connection] = []
        self.processes = []
        context = warm_context()
        for rank in range(workers):
            mine, its = context.Pipe()
            process = context.Process(target=_work, args=(its, rank, workers), daemon=True)
            process.start()
            self._pipes.append(mine)
            self.processes.append(process)

    def run(
        self, make: Callable[[], Program], *assignments: Assignment, before: Callable[[], None] | None = None
    ) -> list:
        """By rank and assignment: a `Segment`, or the error in its place.

        Args:
            make: makes the program, on each worker.
            *assignments: served one after another, in the same processes.
            before: is called on each worker first.
        """
        order = cloudpickle.dumps((make, assignments, f"{self._folder}/{uuid.uuid4().hex}", before))
        for pipe in self._pipes:
            pipe.send_bytes(order)
        found = []
        for rank, pipe in enumerate(self._pipes):
            assert pipe.poll(SECONDS), f"waited {SECONDS:g} s for rank {rank}"
            found.append(pickle.loads(pipe.recv_bytes()))
        return found

    def close(self) -> None:
        """Ends the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self.processes:
            process.join(5)
            process.kill()


@contextmanager
def process_gang(workers: int, folder: str):
    gang = ProcessGang(workers, folder)
    try:
        yield gang
    finally:
        gang.close()


def serve(
    program: Program,
    context: WorkerContext,
    assignments: tuple[Assignment, ...],
    meet: Callable[[], None] = lambda: None,
) -> list[Segment | Exception]:
    """Serve assignments as a gang's worker; halt one after the reports in its hyperparameter `halt_at`.

    `meet` waits for the other workers behind each assignment, as a gang's driver does: its files are written then.
    """
    program.open(context)
    found: list[Segment | Exception] = []
    for assignment in assignments:
        try:
            reports: list[Report] = []
            halt_at = assignment.hyperparameters.get("halt_at", math.inf) if context.rank == 0 else math.inf
            found.append(program.train(assignment, reports.append, partial(_due, reports, halt_at)))
        except Exception as error:
            error.__traceback__ = None
            error.__cause__ = error.__context__ = None
            found.append(error)
        meet()
    program.close()
    return found


def serve_alone(program: Program, *assignments: Assignment, cpus: int = 1) -> list[Segment | Exception]:
    """The same in this process."""
    return serve(program, alone(cpus), assignments)


def _work(pipe: Connection, rank: int, workers: int) -> None:
    import torch
    from torch.distributed import FileStore

    torch.set_num_threads(1)
    while True:
        try:
            raw = pipe.recv_bytes()
        except EOFError:
            return
        try:
            make, assignments, folder, before = pickle.loads(raw)
            store, said, met = FileStore(folder, workers), iter(range(1000)), iter(range(1000))

            def broadcast(value: Any, store=store, said=said) -> Any:
                key = f"broadcast/{next(said)}"
                if rank == 0:
                    store.set(key, pickle.dumps(value))
                return pickle.loads(store.get(key))

            store.set(f"pid/{rank}", str(os.getpid()))

            def meet(store=store, met=met) -> None:
                behind = next(met)
                store.set(f"met/{behind}/{rank}", "")
                for other in range(workers):
                    pid = int(store.get(f"pid/{other}"))
                    while not store.check([f"met/{behind}/{other}"]) and psutil.pid_exists(pid):
                        time.sleep(0.005)

            context = WorkerContext(
                rank=rank,
                world_size=workers,
                node_ip="127.0.0.1",
                cpus=1,
                broadcast=broadcast,
                local_rank=rank,
                local_world_size=workers,
            )
            if before:
                before()
            answer: Any = serve(make(), context, assignments, meet)
        except BaseException as error:
            answer = RuntimeError("".join(traceback.format_exception(error)))
        pipe.send_bytes(cloudpickle.dumps(answer))


def _due(reports: list[Report], halt_at: float) -> bool:
    """Whether the report that is being made, or was made just now, is the one to halt at."""
    return bool(reports) and reports[-1].step + 1 >= halt_at
