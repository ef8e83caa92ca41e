"""Messages between driver and gang: assignments one way, events the other."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainers import storage
from trainers.checkpoint import UNKNOWN, Manifest
from trainers.errors import in_words

WORKERS = "num_workers"
"""The hyperparameter that gives a configuration a gang of its own size, where the trainer has gangs of several."""

AUTO = "auto"
"""Its value where a tuner's probe is to choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Train this trial, from this checkpoint, until this resource.

    Args:
        trial_id: the trial to train.
        hyperparameters: its configuration, static and tuned values together.
        seed: the trial's seed; a segment's own seed derives from it and `start`.
        start: resource units already in `checkpoint`; 0 trains from nothing.
        stop: resource units to stop at, absolute; more than `start`.
        checkpoint: URI of the checkpoint that holds `start` units, or None where `start` is 0.
        manifest: its files, which whoever loads it compares with what is there.
        save_to: URI that the checkpoint holding `stop` units is written to; one that holds fewer, since the assignment
            was halted, stands beside it.
        objective: key of the metric that has to be a finite number in every report; empty where none has to.
        goes_on: the trial may go on from `stop` at once, on the same gang, so that what trains it can wait for that
            instead of being ended; it is told by an assignment that begins there, or by another.
        mode: which end of the objective is better, "max" or "min"; empty where nobody compares trials.
        by_best: trials are compared by their best value, so that the model of that unit is the trial's.
        limit: units that the trial trains at most; 0 where that is not known.
        value: the objective at `start`; NaN where it has none.
    """

    trial_id: str
    hyperparameters: dict[str, Any]
    seed: int
    start: int
    stop: int
    checkpoint: str | None
    save_to: str
    objective: str = ""
    manifest: Manifest = UNKNOWN
    goes_on: bool = False
    mode: str = ""
    by_best: bool = False
    limit: int = 0
    value: float = math.nan

    @property
    def final(self) -> bool:
        """Whether the trial ends at `stop`, so that what trains it may take its time to end by itself."""
        return 0 < self.limit <= self.stop

    def divergence(self, report: Report) -> str:
        """The message about an objective that is no finite number; empty for one, or without it."""
        value = report.metrics.get(self.objective, 0.0)
        return "" if math.isfinite(value) else f"{self.objective} is {value} at unit {report.step}"

    def saved_at(self, step: int) -> str:
        """URI of the checkpoint that holds `step` units: `save_to`, or a file of its own beside it."""
        return self.save_to if step == self.stop else storage.beside(self.save_to, f"{step:06d}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One unit of resource: `step` counts from 1, absolute over the trial's life; `metrics` are rank 0's."""

    step: int
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Result of an assignment.

    Args:
        reports: one a resource unit, steps `start + 1` to `stop`, or to an earlier one where it was halted.
        checkpoint: URI of the checkpoint that was written.
        manifest: its files, on rank 0.
        training_seconds: wall seconds of training on rank 0, evaluation included.
        checkpointing_seconds: wall seconds of reading and writing checkpoints on rank 0.
        first_step_at: when rank 0 took its first training step, in seconds since the epoch.
        starting_seconds: wall seconds of starting workers for this assignment alone; 0 where the gang is warm.
        details: what happened beside the metrics, as JSON takes it; `merged` adds up those of a trial's segments.
    """

    reports: tuple[Report, ...]
    checkpoint: str
    training_seconds: float
    checkpointing_seconds: float
    first_step_at: float
    starting_seconds: float = 0.0
    manifest: Manifest = UNKNOWN
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def reached(self) -> int:
        """Units in its checkpoint."""
        return self.reports[-1].step


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The details of two segments as one: numbers add, dicts key by key, and of anything else the second's is taken."""
    return {**first, **{key: _added(first[key], value) if key in first else value for key, value in second.items()}}


def _added(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return merged(first, second)
    return first + second if _is_number(first) and _is_number(second) else second


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """The order that ends a gang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The order that ends what a gang serves at its next report."""


Order = Assignment | Halt | Goodbye


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPlaced:
    """A gang's workers have started, for the first time or again, and have opened nothing yet.

    Args:
        gang: its name.
        placement_group: hex id of the placement group that holds them.
    """

    gang: str
    placement_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GangUp:
    """A gang is ready to serve, for the first time or again after it lost a worker.

    Args:
        gang: its name.
        workers: how many it has.
        incarnation: which worker group of the gang this is; orders name it, so that none reaches another.
        serves: trials for so many workers, where it has fewer: an elastic gang.
        pids: process id of each rank, on its own node.
        nodes: hex id of each rank's node.
        hosts: name of each rank's machine.
        devices: what each rank computes on, in words: "2 cores", "GPU 0".
        opening: wall seconds that rank 0 spent by step: "load", "join", "bins", "build".
    """

    gang: str
    workers: int = 1
    incarnation: str
    serves: int = 0
    pids: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    opening: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Reports of an assignment that is still being served."""

    gang: str
    trial_id: str
    reports: tuple[Report, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An assignment is done: `segment` holds what it gave, or `error` why every rank refused it.

    Args:
        gang: the gang that served it.
        trial_id: the trial.
        segment: what it gave.
        error: why it was refused, in a line.
        traceback: the remote traceback.
        logs: where the worker's output is, as "address:path".
        diverged: it was refused since the trial's loss or parameters are no finite numbers any more: no failure.
        away: it was refused since its checkpoints can be neither read nor written: no failure, and to be served again.
        spoilt: it was refused since the checkpoint to go on from is gone, cut short or changed.
        broken: it has broken a worker's process as well, so that the gang starts again.
        of_job: it was refused for a fault of its job, by which each trial would fail.
        reports: what rank 0 reported before it was refused.
    """

    gang: str
    trial_id: str
    segment: Segment | None = None
    error: str = ""
    traceback: str = ""
    logs: str = ""
    diverged: bool = False
    away: bool = False
    spoilt: bool = False
    broken: bool = False
    of_job: bool = False
    reports: tuple[Report, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAway:
    """A gang waits for the storage of checkpoints: `reason` says why, and is empty when it waits no more."""

    gang: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GangLost:
    """A gang lost workers and is coming back by itself; what it was serving has to be served again."""

    gang: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GangEnded:
    """A gang is over: `error` says why, and is empty where it was told to end.

    Args:
        gang: its name.
        error: why it ended.
        traceback: the remote traceback, where there is one.
        final: another gang would end the same way (its data cannot be read, say), so that none should be started.
        logs: where the output of the worker that says so is, as "address:path".
    """

    gang: str
    error: str = ""
    traceback: str = ""
    final: bool = False
    logs: str = ""


Event = GangPlaced | GangUp | Progress | Served | StorageAway | GangLost | GangEnded


def one_line(error: BaseException) -> str:
    """The first line of an error that says something, without when and where in XGBoost's source it was written.

    XGBoost's messages also carry a stack trace behind it. What is left is the same for every trial with that error.
    """
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return in_words(error, re.sub(r"^\[\d\d:\d\d:\d\d\] \S+:\d+: ", "", line))
