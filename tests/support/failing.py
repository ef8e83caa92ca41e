"""XGBoost in a gang's workers, and training that fails as its assignment says."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from ray.exceptions import RayActorError

from trainers.errors import DivergedError, GangError
from trainers.gangs.messages import Assignment, Report, Segment
from trainers.gangs.program import Program, WorkerContext, never


def tell(here: str) -> None:
    """Prints and warns in all the ways in which a program's words may come."""
    print(f"printed in {here}")  # noqa: T201
    logging.getLogger("of.the.user").warning("warned in %s", here)
    os.write(2, b"written by a library\n")


class FailsAsAsked:
    """Another program, but for assignments with `fails`: "raise", or the path of a marker.

    Without its marker the group of workers breaks, once; with it, the trial diverges.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._rank = 0

    def open(self, context: WorkerContext) -> dict[str, float]:
        self._rank = context.rank
        return self._program.open(context)

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        if not (how := assignment.hyperparameters.get("fails")):
            return self._program.train(assignment, on_report, halted)
        if how == "raise":
            tell("train")
            raise ValueError("raised in train")
        if not Path(how).exists():
            if self._rank == 1:
                Path(how).touch()
                raise GangError("a server is gone")
            time.sleep(3600)  # As one that waits in a collective: the error of one rank is enough.
        for step in (1, 2):
            on_report(Report(step=step, metrics={"loss": 1.0}))
        raise DivergedError("the loss is nan")

    def close(self) -> None:
        self._program.close()


class OpensOnce:
    """A program that opens where its marker is not there, and makes it; else it waits in vain.

    Args:
        marker: a path.
    """

    def __init__(self, marker: str) -> None:
        self._marker = Path(marker)

    def open(self, context: WorkerContext) -> dict[str, float]:
        if context.broadcast(self._marker.exists()):
            time.sleep(3600)
        self._marker.touch()
        return {}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        raise NotImplementedError

    def close(self) -> None:
        pass


class LosesAnActor(OpensOnce):
    """A program whose first opening finds an actor of Ray dead on rank 1, while rank 0 waits for it."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        if context.broadcast(not self._marker.exists()):
            if context.rank == 1:
                self._marker.touch()
                raise RayActorError
            context.broadcast(None)
        return {}
