"""`TrainingResult`, and one training on a gang of its own."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from trainers import steady, storage
from trainers.errors import DivergedError, GangError, StorageError, TrialError
from trainers.gangs import (
    Assignment,
    GangEnded,
    GangLost,
    Gangs,
    GangUp,
    Progress,
    Report,
    Segment,
    Served,
    StorageAway,
    check_chosen,
)
from trainers.home import home
from trainers.notebook import facts_html

if TYPE_CHECKING:
    import pandas

MOST_ATTEMPTS = 3
"""Gangs' turns at one training, the last of which may not be lost."""


class Trained(Protocol):
    """A trainer that has a model."""

    def model(self) -> Any:
        """The model, in its library's own form."""


TrainerT = TypeVar("TrainerT", bound=Trained, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult(Generic[TrainerT]):
    """Result of one training.

    Args:
        metrics: the last report's, by "channel:metric".
        reports: one a unit of resource.
        checkpoint: URI of the trained model.
        worker_seconds: billed seconds times workers, starting included.
        training_seconds: of wall time that the workers trained.
        trainer: what trained it, with the model.
        details: what happened beside the metrics, as its trainer tells it; empty where that is nothing.
    """

    metrics: dict[str, float]
    reports: tuple[Report, ...]
    checkpoint: str
    worker_seconds: float
    training_seconds: float
    trainer: TrainerT
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, segment: Segment, worker_seconds: float, trainer: Any) -> Self:
        """The result of the one segment of a whole training."""
        return cls(
            metrics=dict(segment.reports[-1].metrics),
            reports=segment.reports,
            checkpoint=segment.checkpoint,
            worker_seconds=worker_seconds,
            training_seconds=segment.training_seconds,
            trainer=trainer,
            details=segment.details,
        )

    @property
    def curve(self) -> pandas.DataFrame:
        """A row a unit of resource, indexed by `step`; a column a metric."""
        import pandas

        rows = [{"step": report.step, **report.metrics} for report in self.reports]
        return pandas.DataFrame(rows).set_index("step")

    def model(self) -> Any:
        """The trained model, in its library's own form."""
        return self.trainer.model()

    def _repr_html_(self) -> str:
        """For notebooks: what it came to."""
        facts = {
            **self.metrics,
            "units": len(self.reports),
            "billed": f"{self.worker_seconds:.1f} worker-seconds",
            "checkpoint": self.checkpoint,
            **self.details,
        }
        return facts_html(type(self.trainer).__name__, facts)


def whole_training(
    hyperparameters: dict[str, Any], seed: int, units: int, storage_path: str | None, suffix: str
) -> tuple[str, Assignment]:
    """One training from nothing to its last unit: a folder of its own, and its assignment.

    Args:
        hyperparameters: what is trained.
        seed: of the training's random numbers.
        units: how long it trains.
        storage_path: folder or URI that its own folder is put into, made where it is not there; None is
            `WARMBAND_HOME/runs`.
        suffix: ending of its checkpoint's name.
    """
    check_chosen(hyperparameters)
    name = f"run-{uuid.uuid4().hex[:8]}"
    place = storage.absolute(storage_path or f"{home()}/runs")
    folder = storage.join(place, name)
    storage.make_folder(place)
    return folder, Assignment(
        trial_id=name,
        hyperparameters=hyperparameters,
        seed=seed,
        start=0,
        stop=units,
        checkpoint=None,
        save_to=storage.join(folder, f"{units:06d}{suffix}"),
        limit=units,
    )


def serve_alone(
    gangs: Gangs,
    assignment: Assignment,
    workers: int,
    patience: float,
    then: Callable[[Segment], Assignment | None] = lambda _: None,
) -> tuple[Segment, float]:
    """Serve one assignment, and further ones of the same trial.

    Args:
        gangs: that have one gang to serve it.
        assignment: the first.
        workers: of the gang.
        patience: seconds that may pass without a report.
        then: returns the next assignment after a segment; None after the last.

    Returns:
        The last segment, and the worker-seconds that its gang was held for.

    Raises:
        GangError: no report for `patience` seconds, or the workers were lost again and again.
        TrialError: training failed, or diverged.
        StorageError: its model cannot be written.
    """
    attempts = 0
    deadline = math.inf
    while True:
        gangs.want({workers: 1}, None)
        for event in gangs.events(1.0):
            match event:
                case Progress() | StorageAway():
                    deadline = time.monotonic() + patience
                case GangLost(reason=reason) | GangEnded(error=reason):
                    deadline = math.inf  # Starting has deadlines of its own.
                    if attempts >= MOST_ATTEMPTS:
                        raise GangError(
                            f"this training lost its workers {attempts} times, the last time with: {reason}"
                        )
                case GangUp():
                    attempts += 1
                    held_since, workers_there = gangs.held_since(event.gang), event.workers
                    gangs.assign(event.gang, assignment)
                    deadline = time.monotonic() + patience
                case Served(segment=Segment() as segment):
                    if (following := then(segment)) is None:
                        return segment, (steady.now() - held_since) * workers_there
                    assignment = following
                    gangs.assign(event.gang, assignment)
                    deadline = time.monotonic() + patience
                case Served(away=True):
                    raise StorageError(event.error)
                case Served():
                    raise (DivergedError if event.diverged else TrialError)(event.error, event.traceback, event.logs)
        if time.monotonic() > deadline:
            raise GangError(f"waited {patience:g} s for a report of {assignment.trial_id}, and none came")
