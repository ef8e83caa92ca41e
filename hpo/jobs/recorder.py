"""How a running job is written to the store, and to whoever watches it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ray.tune.experiment import Trial

from hpo.cost import Entry, Ledger
from hpo.jobs.files import Checkpoints
from hpo.jobs.replay import DIVERGED_FROM, GOES_ON_FROM, Memory
from hpo.record import JobWriter, LedgerRow, ReportRow, TrialRow, TrialStatus
from hpo.search import Controller, TrialRun, Watcher
from hpo.strategies import Cut
from trainers import steady
from trainers.gangs import Report


class JobRecord:
    """Turns what the controller reports into rows of the store.

    Args:
        writer: the job's writer.
        metric: key of the objective.
        watchers: are told of all that the record is.
        checkpoints: says which of them go; None keeps every one.
        memory: what the record has of the job already.
        notes: what the job's summary says while it runs.
    """

    def __init__(
        self,
        writer: JobWriter,
        metric: str,
        watchers: Sequence[Watcher] = (),
        checkpoints: Checkpoints | None = None,
        memory: Memory | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self._writer = writer
        self._metric = metric
        self._watchers = watchers
        self._checkpoints = checkpoints
        self._memory = Memory() if memory is None else memory
        self.notes = dict(notes or {})
        """The summary of the running job."""
        self._bills: Ledger | None = None

    @property
    def stop_requested(self) -> bool:
        """Whether another process asked for the job to be stopped.

        Raises:
            LeaseError: another process drives the job.
        """
        if self._writer.lost_lease:
            self._writer.job()  # which says who does
        return self._writer.stop_requested

    @property
    def gang_seconds(self) -> float:
        """Seconds in which the job had a gang, those of its runs before included."""
        return self._memory.before.gang_seconds if self._bills is None else self._bills.gang_seconds

    def note(self, **notes: Any) -> None:
        """Puts something into the summary of the running job."""
        if any(self.notes.get(name) != value for name, value in notes.items()):
            self.notes |= notes
            self._writer.job(summary=self.notes)

    def trial(self, run: TrialRun) -> None:
        """Records a trial as it is now, and those that lose their checkpoint by it.

        As long as the record knows more of it than was told again, it stays as it is.
        """
        if self._memory.is_behind(run):
            return
        dropped = self._checkpoints.trial(run) if self._checkpoints else []
        for each in dict.fromkeys([run, *dropped]):
            self._write(each)
        if self._checkpoints:
            self._checkpoints.recorded()
        for watcher in self._watchers:
            watcher.trial(run)

    def _write(self, run: TrialRun) -> None:
        self._writer.trial(
            TrialRow(
                job=self._writer.name,
                trial_id=run.id,
                number=run.number,
                status=status_of(run),
                hyperparameters=run.hyperparameters,
                bracket=run.bracket,
                resource=run.resource,
                objective=_finite(run.value),
                best_objective=_finite(run.best_value),
                best_resource=run.best_resource or None,
                checkpoint=run.checkpoint or "",
                checkpoint_bytes=run.checkpoint_bytes,
                failure_reason=run.failure or run.diverged,
                traceback=run.traceback,
                logs=run.logs,
                details={
                    **run.details,
                    **({GOES_ON_FROM: run.back} if run.back else {}),
                    **({DIVERGED_FROM: run.diverged_from} if run.diverged_from else {}),
                },
                attempts=run.attempts,
                started_at=run.started_at,
                ended_at=run.ended_at,
            )
        )

    def leave_out(self, last: int) -> None:
        """Records that trials behind this number do not count, where the record knows more of them than was told."""
        for row in self._memory.unanswered:
            if row.number > last:
                ended_at = row.ended_at or steady.now()
                left = replace(row, objective=None, best_objective=None, best_resource=None, ended_at=ended_at)
                self._writer.trial(replace(left, status="Stopped", checkpoint=""))

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Records what a trial reported, and the record has not."""
        now, kept = steady.now(), self._memory.kept(run.id)
        self._writer.report(
            *(
                ReportRow(
                    job=self._writer.name,
                    trial_id=run.id,
                    step=report.step,
                    objective=_finite(report.metrics.get(self._metric, math.nan)),
                    metrics=report.metrics,
                    at=now,
                )
                for report in reports
                if report.step > kept
            )
        )
        for watcher in self._watchers:
            watcher.reports(run, reports)

    def rung(self, cut: Cut) -> None:
        """Tells the watchers of a rung's decision; the record has what it followed from."""
        for watcher in self._watchers:
            watcher.rung(cut)

    def progress(self, controller: Controller) -> None:
        """Tells the watchers that the loop went round, and notes which gangs are held: whoever resumes bills them."""
        self._bills = controller.ledger
        first = controller.first_step_at and controller.first_step_at - controller.started_at
        seconds, since = self._bills.with_gang
        self.note(held=self._bills.held, first_step_seconds=first, gang_seconds=seconds, gang_since=since)
        for watcher in self._watchers:
            watcher.progress(controller)

    def ledger(self, entries: Sequence[Entry]) -> None:
        """Records billed worker-seconds."""
        self._writer.ledger(
            *(
                LedgerRow(
                    job=self._writer.name,
                    trial_id=entry.trial_id,
                    gang=entry.gang,
                    kind=entry.kind.value,
                    worker_seconds=entry.worker_seconds,
                    at=entry.at,
                    workers=entry.workers,
                )
                for entry in entries
            )
        )
        for watcher in self._watchers:
            watcher.ledger(entries)


def status_of(run: TrialRun) -> TrialStatus:
    """A trial's status in the record: Completed if it ran to its end, Stopped if it was ended before."""
    if run.diverged:
        return "Diverged"
    if run.ahead and run.trial.status == Trial.TERMINATED:
        return "Stopped"
    if run.trial.status == Trial.ERROR:
        return "Failed"
    if run.trial.status == Trial.TERMINATED:
        return "Completed" if run.resource >= run.limit else "Stopped"
    pending: TrialStatus = "Pending" if run.resource == 0 else "Paused"
    return "Running" if run.trial.status == Trial.RUNNING else pending


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
