"""A gang of one worker in this very process, without Ray, for a debugger and for small data."""

from __future__ import annotations

import bdb
import logging
import os
import socket
import time
import traceback
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ray.train import ScalingConfig

from trainers import steady
from trainers.errors import BrokenWorkerError, CheckpointError, DivergedError, GangError, JobError, is_away
from trainers.gangs.messages import Assignment, Event, GangUp, Report, Served, one_line
from trainers.gangs.program import Program, WorkerContext, output_of
from trainers.gangs.worker import device
from trainers.patient_storage import PatientStorage, saying
from trainers.process import calm_loaded

logger = logging.getLogger(__name__)


class InHand:
    """Serves assignments one at a time in the thread that asks for events.

    Whatever is wanted, it is one gang. Nothing of it runs elsewhere, so that breakpoints in training code, Ctrl-C and
    profilers work as in any program.

    Args:
        name: prefix of the gang's name.
        program: what it runs.
        scaling: whose `resources_per_worker` may say how many cores to use; without, all that this process may use.
        notify: is told why checkpoints cannot be read or written, while it waits for that.
    """

    def __init__(
        self, name: str, program: Program, scaling: ScalingConfig, notify: Callable[[str], None] = logger.info
    ) -> None:
        self._gang = f"{name}-in-hand"
        self._program = program
        self._cpus = cores(scaling)
        self._since = 0.0
        self._up: GangUp | None = None
        self._news: list[Event] = []
        self._queue: list[Assignment] = []
        self._halted = False
        self._broken = ""
        """The error of a trial that left this process of no use."""
        self._storage = PatientStorage(saying(notify), lambda: self._halted)

    @property
    def starting(self) -> int:
        """None: it is up when `want` returns."""
        return 0

    def held_since(self, gang: str) -> float:
        """When it began to load its data, in seconds since the epoch."""
        return self._since

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        """Opens the program if it is not open yet, however many gangs are wanted.

        Raises:
            GangError: the program cannot open, because its data cannot be read, say.
        """
        if self._up is not None or not any(sizes.values()):
            return ()
        self._since = steady.now()
        calm_loaded()
        try:
            opening = self._program.open(alone(self._cpus, self._storage))
        except bdb.BdbQuit:
            raise
        except Exception as error:
            raise GangError(f"this process cannot serve: {one_line(error)}\n{traceback.format_exc()}") from error
        self._up = GangUp(
            gang=self._gang,
            incarnation=uuid.uuid4().hex,
            pids=(os.getpid(),),
            hosts=(socket.gethostname(),),
            devices=(device(self._cpus),),
            opening=opening,
        )
        self._news.append(self._up)
        return ()

    def give_back(self) -> Collection[str]:
        """None: nothing else wants this process."""
        return ()

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Puts an assignment by until `events` is asked for."""
        self._halted = False
        self._queue.append(assignment)

    def halt(self, gang: str) -> None:
        """See `Gangs.halt`: whoever is to be heard while it trains calls from a signal handler or another thread."""
        self._halted = True

    def events(self, timeout: float) -> Sequence[Event]:
        """Trains what is queued, in the calling thread; waits out `timeout` seconds where there is nothing to do."""
        news, self._news = self._news, []
        if news:
            return news
        if self._queue and self._broken:
            raise GangError(
                f"this process cannot train any more, since a trial broke it: {self._broken}; go on in another, with "
                "hpo resume say, or on a gang, ScalingConfig(num_workers=1), which starts again by itself"
            )
        if self._queue:
            return [self._serve(self._queue.pop(0))]
        time.sleep(timeout)
        return []

    def recycle(self, gang: str, reason: str) -> None:
        """Does nothing: it cannot be deaf, since nobody else runs while it serves."""

    def close(self, *, now: bool = False) -> None:
        """Closes the program; a second call does nothing. Nothing is being served: that is done in `events`."""
        if self._up is not None:
            self._up = None
            self._program.close()

    def _serve(self, assignment: Assignment) -> Served:
        trial = assignment.trial_id
        reports: list[Report] = []
        try:
            segment = self._program.train(assignment, reports.append, lambda: self._halted)
        except bdb.BdbQuit:
            raise  # Whoever leaves the debugger wants to leave, not to fail a trial.
        except Exception as error:
            if isinstance(error, BrokenWorkerError):
                self._broken = one_line(error)
            return Served(
                gang=self._gang,
                trial_id=trial,
                error=one_line(error),
                traceback=traceback.format_exc(),
                logs=getattr(error, "logs", "") or output_of(self._program),
                diverged=isinstance(error, DivergedError),
                away=is_away(error),
                spoilt=isinstance(error, CheckpointError),
                of_job=isinstance(error, JobError),
                reports=tuple(reports),
            )
        return Served(gang=self._gang, trial_id=trial, segment=segment, logs=output_of(self._program))


def cores(scaling: ScalingConfig | None) -> int:
    """The cores that training in this process uses: what `resources_per_worker` says, or all it may run on."""
    resources: Any = scaling and scaling.resources_per_worker
    cpus = (resources or {}).get("CPU")
    return max(1, int(cpus)) if cpus else len(os.sched_getaffinity(0))


def alone(cpus: int, storage: PatientStorage | None = None) -> WorkerContext:
    """Where a program stands that has this process for its only worker."""
    return WorkerContext(
        rank=0,
        world_size=1,
        node_ip="127.0.0.1",  # Nobody calls it, for want of peers.
        cpus=cpus,
        broadcast=lambda value: value,
        in_hand=True,
        storage=storage or PatientStorage(),
    )
