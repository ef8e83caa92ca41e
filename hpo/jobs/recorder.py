"""Recorder of a running job: writes to the store, and tells the observers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hpo.cost import Entry, Ledger
from hpo.forks import Origin
from hpo.jobs.files import Checkpoints
from hpo.jobs.replay import DIVERGED_FROM, GOES_ON_FROM, LENDS, SHARED, Memory
from hpo.record import AdditionRow, JobWriter, LedgerRow, ReportRow, TrialRow
from hpo.search import JobState, Observer, TrialRun, status_of
from hpo.strategies import Cut
from trainers import steady
from trainers.checkpoint import UNKNOWN
from trainers.gangs import Report


class JobRecord:
    """Turns what the controller reports into rows of the store.

    Args:
        writer: the job's writer.
        metric: key of the objective.
        observers: are told of all that the record is, of each step once.
        checkpoints: says which of them go; None keeps every one.
        memory: what the record has of the job already.
        notes: what the job's summary says while it runs.
    """

    def __init__(
        self,
        writer: JobWriter,
        metric: str,
        observers: Sequence[Observer] = (),
        checkpoints: Checkpoints | None = None,
        memory: Memory | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self._writer = writer
        self._metric = metric
        self._observers = observers
        self._told: dict[str, int] = {}
        """The last step of each trial under way that they were told of."""
        self._ended: set[str] = set()
        """Trials of whose end they were told."""
        self._checkpoints = checkpoints
        self._memory = Memory() if memory is None else memory
        self.notes = dict(notes or {})
        """The summary of the running job."""
        self._bills: Ledger | None = None
        self._changed: set[str] = set()
        """Trials whose rows are not those of the driver before any more."""

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
    def additions(self) -> Sequence[AdditionRow]:
        """See `Record.additions`."""
        return self._writer.additions

    @property
    def stops(self) -> Mapping[str, str]:
        """See `Record.stops`."""
        return self._writer.stops

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
        if run.ended_at is not None:
            self._told.pop(run.id, None)
            if run.id in self._ended and not run.ahead:
                return  # That no criterion has still to look at it is nothing to them.
            self._ended.add(run.id)
        for observer in self._observers:
            observer.trial(run)

    def _write(self, run: TrialRun) -> None:
        if run.at_rung.get("resource", 0) > run.resource:  # It trains its rungs again; what was decided of them stays.
            run = replace(run, **run.at_rung, checkpoint=None, manifest=UNKNOWN)
        self._put(
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
                checkpoint_bytes=run.manifest.size,
                files=run.manifest.to_json(),
                failure_reason=run.failure or run.diverged,
                traceback=run.traceback,
                logs=run.logs,
                details={
                    **run.details,
                    **({GOES_ON_FROM: run.back} if run.back else {}),
                    **({DIVERGED_FROM: run.diverged_from} if run.diverged_from else {}),
                    **({SHARED: run.shared} if run.shared else {}),
                    **({LENDS: run.lends} if run.lends else {}),
                },
                turns=run.turns,
                attempts=run.attempts,
                started_at=run.started_at,
                ended_at=run.ended_at,
                given=run.given,
                believed=dict(run.believed),
                stopped={"by": run.stopped.by, "told": run.stopped.told} if run.stopped else {},
                **_begun(run.origin or run.common),
            )
        )

    def _put(self, row: TrialRow) -> None:
        """Write a trial's row, unless it stands in the record as it is: most rows of a resumed job do."""
        if row.trial_id not in self._changed:
            if row == self._memory.recorded(row.trial_id):
                return
            self._changed.add(row.trial_id)
        self._writer.trial(row)

    def leave_out(self, last: int) -> None:
        """Records that trials behind this number do not count, where the record knows more of them than was told."""
        for row in self._memory.unanswered:
            if row.number > last:
                ended_at = row.ended_at or steady.now()
                left = replace(row, objective=None, best_objective=None, best_resource=None, ended_at=ended_at)
                self._put(replace(left, status="Stopped", checkpoint=""))

    def leave_undecided(self) -> None:
        """Records that forks end of which a job that has ended did without."""
        for row in self._memory.undecided:
            if row.ended_at is None:
                self._put(replace(row, status="Stopped", checkpoint="", ended_at=steady.now()))

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Records what a trial reported, and the record has not for good; observers are told of what is new to them.

        What came while a trial was served comes again when it is done, and what is trained again after a loss, too.
        """
        now, kept = steady.now(), max(run.begins_at, self._memory.kept(run.id))
        rows = [
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
        ]
        if rows:
            self._writer.report(*rows)
        told = self._told.get(run.id, max(run.begins_at, self._memory.reported(run.id)))
        if new := [report for report in reports if report.step > told]:
            self._told[run.id] = new[-1].step
            for observer in self._observers:
                observer.reports(run, new)

    def rung(self, cut: Cut) -> None:
        """Tells the observers of a rung's decision; the record has what it followed from."""
        for observer in self._observers:
            observer.rung(cut)

    def progress(self, state: JobState) -> None:
        """Tells the observers that the loop went round, and notes which gangs are held, and what each does.

        Whoever resumes bills those; whoever looks sees these.
        """
        self._bills = state.ledger
        seconds, since = self._bills.with_gang
        self.note(
            held=self._bills.held,
            gangs_now=state.gangs,
            gangs_starting=state.gangs_starting,
            first_step_seconds=state.first_step_seconds,
            gang_seconds=seconds,
            gang_since=since,
        )
        for observer in self._observers:
            observer.progress(state)

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
        for observer in self._observers:
            observer.ledger(entries)


def _begun(origin: Origin | None) -> dict[str, Any]:
    if origin is None:
        return {}
    return {"parent": origin.parent, "parent_resource": origin.resource, "replaces": origin.replaces}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
