"""Callbacks: users' own code, called while a job runs."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpo.record import tags_from, tags_of
from trainers.errors import WarmbandError

if TYPE_CHECKING:  # Job files name trackers, which are callbacks, and are read without Ray.
    from hpo.cost import Entry
    from hpo.record import JobRow, TrialStatus
    from hpo.search import JobState, Recall, TrialRun
    from hpo.strategies import Cut
    from trainers.gangs import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStart:
    """A job's start, for callbacks.

    Args:
        name: the job's.
        metric: what its trials are compared by, such as "validation:auc".
        objective_type: "Maximize" or "Minimize".
        hyperparameters: the static ones; tuned values override them.
        ranges: the tuned ones, by name, as the record keeps them: `hpo.ranges.range_from_json` makes ranges of them.
        plan: the brackets, as `Plan.to_json` gives them.
        seed: what everything random derives from.
        tags: the tuner's.
    """

    name: str
    metric: str
    objective_type: str
    hyperparameters: dict[str, Any]
    ranges: dict[str, dict[str, Any]]
    plan: dict[str, Any]
    seed: int
    tags: list[dict[str, str]]

    @classmethod
    def of(cls, job: JobRow) -> JobStart:
        """A job as it was recorded when it began."""
        return cls(
            name=job.name,
            metric=job.spec["objective_metric_name"],
            objective_type=job.spec["objective_type"],
            hyperparameters=job.spec["estimator"]["hyperparameters"],
            ranges=job.spec["hyperparameter_ranges"],
            plan=job.plan,
            seed=job.spec["random_seed"],
            tags=tags_from(tags_of(job.spec.get("tags"))) or [],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialInfo:
    """A trial, for callbacks.

    Args:
        id: its name.
        number: its place in the order of suggestion, from 0.
        hyperparameters: the tuned values.
        bracket: index of its bracket in the plan's `brackets`, from 0, as in every record and JSON; people see brackets
            counted from 1. None where the strategy has none.
    """

    id: str
    number: int
    hyperparameters: dict[str, Any]
    bracket: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnd:
    """A trial's end, for callbacks.

    Args:
        status: "Completed"; "Stopped" before its end; "Diverged", its numbers are not finite any more; or "Failed".
        objective: the last value that it was compared by; None where it has none.
        best_objective: the best of them.
        resource: units that it was trained.
        failure: why it failed or diverged; empty if it did not.
        checkpoint: where its model is; empty where it has none, or the job does not keep it.
        worker_seconds: what was billed for it.
    """

    status: TrialStatus
    objective: float | None
    best_objective: float | None
    resource: int
    failure: str
    checkpoint: str
    worker_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """A job's end, for callbacks.

    Args:
        name: the job's.
        status: "Completed", "Failed" or "Stopped".
        reason: why it did not run to its plan's end; empty if it did.
        summary: as in `describe()["Summary"]`; empty where the job could not be run.
    """

    name: str
    status: str
    reason: str
    summary: dict[str, Any]


class Callback:
    """Override what you need. Calls come from the job's own loop, one after another: what takes long holds the job up.

    An exception is printed, once for each different one, and the job goes on; a WarmbandError without its traceback.
    """

    def on_job_start(self, job: JobStart) -> None:
        """The job is in the record, and its first gang is about to start."""

    def on_trial_report(self, trial: TrialInfo, report: Report) -> None:
        """A trial reported a unit of resource: each step once, rising, when its rung is done or once a second."""

    def on_trial_end(self, trial: TrialInfo, end: TrialEnd) -> None:
        """A trial has ended: once for each, except for those that were under way when the job itself broke off."""

    def on_rung(self, cut: Cut) -> None:
        """All trials of a rung are in: which go on, and which are stopped."""

    def on_job_end(self, job: JobEnd) -> None:
        """The job has ended and is recorded; its gangs are closed."""


class Callbacks:
    """Calls users' callbacks as the job's observer.

    Args:
        callbacks: called in this order.
        notify: is told of their exceptions.
        recall: what an earlier run of the job has told already, and is not told again.
    """

    def __init__(
        self, callbacks: Sequence[Callback], notify: Callable[[str], None], recall: Recall | None = None
    ) -> None:
        self._callbacks = callbacks
        self._notify = notify
        self._recall = recall
        self._told: set[tuple[str, str]] = set()
        self._ended: set[str] = set()
        self._state: JobState | None = None

    def job_start(self, job: JobStart) -> None:
        """Hands it on."""
        self._call("on_job_start", job)

    def trial(self, run: TrialRun) -> None:
        """Hands on that a trial has ended."""
        # One that has ended changes once more where it turns out not to count.
        if run.ended_at is not None and run.tuned and run.id not in self._ended:
            self._ended.add(run.id)
            if self._recall is not None and self._recall.ended_at(run) is not None:
                return
            self._call("on_trial_end", _info(run), self._end(run))

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Hands them on, one after another."""
        if not run.tuned or not self._callbacks:
            return
        info = _info(run)
        for report in reports:
            self._call("on_trial_report", info, report)

    def rung(self, cut: Cut) -> None:
        """Hands it on."""
        if self._recall is None or not all(
            self._recall.reached(trial, cut.resource) for trial in (*cut.went_on, *cut.stopped)
        ):
            self._call("on_rung", cut)

    def ledger(self, entries: Sequence[Entry]) -> None:
        """Does nothing: a trial's bill is told at its end."""

    def progress(self, state: JobState) -> None:
        """Keeps it, for what it has billed."""
        self._state = state

    def job_end(self, job: JobEnd) -> None:
        """Hands it on."""
        self._call("on_job_end", job)

    def _end(self, run: TrialRun) -> TrialEnd:
        from hpo.search import status_of

        billed = self._state.ledger.by_trial if self._state else {}
        return TrialEnd(
            status=status_of(run),
            objective=run.value if math.isfinite(run.value) else None,
            best_objective=run.best_value if math.isfinite(run.best_value) else None,
            resource=run.resource,
            failure=run.failure or run.diverged,
            checkpoint=run.checkpoint or "",
            worker_seconds=billed.get(run.id, 0.0),
        )

    def _call(self, method: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            try:
                getattr(callback, method)(*arguments)
            except Exception as error:
                where = f"{type(callback).__name__}.{method}"
                if (where, repr(error)) not in self._told:
                    self._told.add((where, repr(error)))
                    ours = isinstance(error, WarmbandError)
                    text = f"{where} raised, and the job goes on\n{traceback.format_exc().rstrip()}"
                    self._notify(f"warning: {error if ours else text}")


def _info(run: TrialRun) -> TrialInfo:
    return TrialInfo(id=run.id, number=run.number, hyperparameters=dict(run.hyperparameters), bracket=run.bracket)
