"""Replay of a resumed job: answers from the record to assignments that were served before.

The controller of such a job decides anew, from its first trial on. What it hands out is looked for here before a gang
gets it, so the same decisions follow from the same results, and gangs train what is not known yet. Where decisions
also follow from the order of results, the record has that order, and they are told in it once more.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from hpo.forks import Fork, Origin
from hpo.record import JobRow, LedgerRow, ReportRow, Store, TrialRow
from hpo.search import Before, Stopped, TrialRun, Turn, lent, turns_in
from hpo.strategies import FIRST_FAILURES
from trainers import storage
from trainers.checkpoint import Manifest, is_there, is_whole
from trainers.errors import StorageError
from trainers.gangs import Report, Segment, Served

logger = logging.getLogger(__name__)

GOES_ON_FROM = "goes_on_from"
"""Key of a trial's details: where it goes on from, if that is not its latest checkpoint."""

DIVERGED_FROM = "diverged_from"
"""Key of a diverged trial's details: the units of its last rung. Where it is missing, it had reached none."""

SHARED, LENDS = "shared_units", "lends"
"""Keys of a trial's details: units of it that another trained, and checkpoints that others may go on from, by unit."""

_ASIDE = (DIVERGED_FROM, SHARED, LENDS)
_LOST = ("Failed", "Diverged")

READ_BYTES = 512 << 20
"""Bytes of checkpoints that a resumed job reads at most, to compare them with what was written; of more, sizes tell."""

Sound = Callable[[str, Manifest], bool]
"""Whether the checkpoint of a URI is there with all its files, as far as their sizes tell."""


class Memory:
    """The `Recall` of a job, from its record.

    Args:
        trials: as the record has them.
        reports: as the record has them; no more of them is held than what an answer takes.
        before: what the job used.
        sound: see `Sound`; None compares their bytes, too, as far as `READ_BYTES` permits.
    """

    def __init__(
        self,
        trials: Iterable[TrialRow] = (),
        reports: Iterable[ReportRow] = (),
        before: Before | None = None,
        sound: Sound | None = None,
    ) -> None:
        self.before = before or Before()
        self._sound = sound
        self._unread_bytes = READ_BYTES
        trials = list(trials)
        self._recorded = {row.trial_id: row for row in trials}
        rows = [_whole(row) for row in trials]
        if not any(row.resource for row in rows if 0 <= row.number < FIRST_FAILURES):
            # Where none of the first trials trained, what failed is tried again: its cause may be mended.
            rows = [replace(row, status="Pending", attempts=0) if row.status == "Failed" else row for row in rows]
        self._rows = {row.trial_id: row for row in rows}
        self._numbered = {row.number: row for row in rows if row.number >= 0}
        # Forks that nobody has decided on again.
        self._forks = {(row.replaces, row.parent, row.parent_resource): row for row in rows if row.replaces}
        self._open = dict(self._rows)
        """Those that may still answer."""
        self._reports: dict[str, dict[int, Report]] = defaultdict(dict)
        for report in reports:
            # One copy of each name: a row of JSON has its own.
            metrics = {sys.intern(name): value for name, value in report.metrics.items()}
            self._reports[report.trial_id][report.step] = Report(step=report.step, metrics=metrics)

    @classmethod
    def of(cls, store: Store, job: JobRow, *, heard: float) -> Self:
        """A job's memory.

        Args:
            store: the record.
            job: its row.
            heard: when the driver before was last heard of, in unix seconds.
        """
        before = used_before(job, store.ledger(job.name), heard)
        return cls(store.trials(job.name), store.each_report(job.name), before)

    def __bool__(self) -> bool:
        return bool(self._open)

    # ---- for the search

    def suggested(self, number: int) -> Mapping[str, Any] | None:
        """See `Recall.suggested`."""
        row = self._numbered.get(number)
        return None if row is None or row.replaces else row.hyperparameters

    @property
    def numbers(self) -> int:
        """See `Recall.numbers`."""
        return 1 + max(self._numbered, default=-1)

    def forked(self, fork: Fork) -> tuple[int, Mapping[str, Any]] | None:
        """See `Recall.forked`."""
        row = self._forks.pop((fork.trial_id, fork.parent, fork.resource), None)
        return None if row is None else (row.number, row.hyperparameters)

    @property
    def turns(self) -> list[Turn]:
        """See `Recall.turns`."""
        return [turn for row in self._numbered.values() for turn in turns_in(row.trial_id, row.turns)]

    def begin(self, run: TrialRun) -> None:
        """See `Recall.begin`."""
        if row := self._rows.get(run.id):
            run.started_at, run.attempts, run.turns = row.started_at, row.attempts, row.turns
            run.given, run.believed = row.given, row.believed
            if row.stopped:
                run.stop_known = Stopped(by=row.stopped_by, at=row.resource, told=bool(row.stopped.get("told")))
            run.shared, run.lends = row.details.get(SHARED, 0), dict(row.details.get(LENDS, {}))
            if row.parent and not row.replaces:
                run.common = Origin(parent=row.parent, resource=row.parent_resource)
            if run.origin is not None and row.resource == run.resource and row.checkpoint:
                # Its parent may have gone on since.
                run.checkpoint, run.manifest = row.checkpoint, row.manifest
            if row.status == "Diverged" and DIVERGED_FROM not in row.details:
                # What its first rung came to: it is answered with no segment, and nobody goes on from it.
                run.checkpoint, run.manifest = row.checkpoint or None, row.manifest

    def knows(self, trial_id: str) -> bool:
        """See `Recall.knows`."""
        return trial_id in self._open

    def answer(self, run: TrialRun, stop: int) -> Served | None:
        """See `Recall.answer`."""
        row = self._open.get(run.id)
        if row is None:
            return None
        try:
            return self._answer(row, run, stop)
        except StorageError:
            self._open[run.id] = row
            raise

    def drop(self, trial_id: str) -> None:
        """See `Recall.drop`."""
        self._open.pop(trial_id, None)

    def all_told(self) -> None:
        """See `Recall.all_told`."""
        self._open = {name: row for name, row in self._open.items() if row.number < 0}

    def _answer(self, row: TrialRow, run: TrialRun, stop: int) -> Served | None:
        # What it was told in its turn counts, also where it was halted since as it trained its rungs again.
        halted_at = self._recorded[run.id].resource if run.turns else 0
        again = row.resource < stop <= halted_at
        row = replace(row, resource=stop, checkpoint="", files={}, checkpoint_bytes=0) if again else row
        end = min(stop, row.resource)
        if end == row.resource >= halted_at:
            del self._open[run.id]
        reports = [report for step, report in self._reports[run.id].items() if run.resource < step <= end]
        # How far it came says less: one may have diverged on its way to that rung, or in the first unit behind it.
        stood = row.details.get(DIVERGED_FROM, 0) if row.status == "Diverged" else row.resource
        if row.status == "Diverged" and end == row.resource and run.resource >= stood:
            return _refused(row, reports, diverged=True)
        if row.status == "Failed" and run.resource == end:
            return _refused(row, [], diverged=False)
        if run.resource == end or len(reports) < end - run.resource:
            return None  # The rest of it was never served, or not recorded.
        if row.status in _LOST:
            self._open[run.id] = row  # That came further on.
        last = end == stood
        checkpoint, manifest = (row.checkpoint, row.manifest) if last else lent(row.details.get(LENDS, {}), end)
        checkpoint = self._checkpoint(row.trial_id, checkpoint, manifest)
        if last and end < stop and not checkpoint and not row.stopped:
            return None  # It was halted on its way to a rung, and cannot go on from there.
        if last and row.checkpoint and not checkpoint and (row.number < 0 or row.ended_at is not None):
            return None  # The job kept its model, which may be the result's: it is trained again, to the same model.
        segment = Segment(
            reports=tuple(reports),
            checkpoint=checkpoint,
            manifest=manifest,
            training_seconds=0.0,
            checkpointing_seconds=0.0,
            first_step_at=math.nan,
            details={key: value for key, value in row.details.items() if key not in _ASIDE} if last else {},
        )
        return Served(gang="", trial_id=run.id, segment=segment)

    # ---- for those who follow the job

    def is_behind(self, run: TrialRun) -> bool:
        """Whether the record knows more of a trial than was told of it again so far."""
        row = self._open.get(run.id)
        return row is not None and (run.resource < row.resource or row.status in _LOST)

    def ended_at(self, run: TrialRun) -> float | None:
        """See `Recall.ended_at`."""
        row = self._rows.get(run.id)
        return row.ended_at if row and row.resource == run.resource else None

    def reported(self, trial_id: str) -> int:
        """The last step that a trial reported."""
        return max(self._reports.get(trial_id, {}), default=0)

    def kept(self, trial_id: str) -> int:
        """Units up to which its reports are in the record for good; those beyond may come again."""
        return self._rows[trial_id].resource if trial_id in self._rows else 0

    def recorded(self, trial_id: str) -> TrialRow | None:
        """Return the row of a trial as the driver before left it; None where there was none."""
        return self._recorded.get(trial_id)

    def reached(self, trial_id: str, resource: int) -> bool:
        """See `Recall.reached`."""
        return self.kept(trial_id) >= resource

    @property
    def unanswered(self) -> list[TrialRow]:
        """The trials of which the record knows more than was asked for."""
        return list(self._open.values())

    @property
    def undecided(self) -> list[TrialRow]:
        """Forks on which nobody has decided again.

        A search that was stopped may not have come to them. To one that has ended, timing was another than before.
        """
        return list(self._forks.values())

    @property
    def has_checkpoints(self) -> bool:
        """Whether the record names any."""
        return any(row.checkpoint for row in self._rows.values())

    @property
    def trials(self) -> int:
        """How many tuned trials there were."""
        return len(self._numbered)

    @property
    def ended(self) -> list[str]:
        """Those that had ended, as they are now again."""
        return [row.trial_id for row in self._numbered.values() if row.ended_at is not None]

    # ---- within

    def _checkpoint(self, trial_id: str, checkpoint: str, manifest: Manifest) -> str:
        """A trial's checkpoint, if it is there."""
        if not checkpoint or self._is_sound(checkpoint, manifest):
            return checkpoint
        logger.warning(
            "the checkpoint of trial %s, %s, is gone, cut short or changed: it is trained again if needed, to the same "
            "result",
            trial_id,
            storage.shown(checkpoint),
        )
        return ""

    def _is_sound(self, checkpoint: str, manifest: Manifest) -> bool:
        """Whether a checkpoint is what was written: by its bytes, of as many checkpoints as are read in a moment."""
        if self._sound is not None:
            return self._sound(checkpoint, manifest)
        if self._unread_bytes < manifest.size:
            return is_there(checkpoint, manifest)
        self._unread_bytes -= manifest.size
        return is_whole(checkpoint, manifest)


def used_before(job: JobRow, ledger: Sequence[LedgerRow], heard: float) -> Before:
    """The usage of a job until its driver's last heartbeat, with the gangs that it held then.

    Args:
        job: its row.
        ledger: of the job.
        heard: when that was, in unix seconds.
    """
    seconds = sum(
        (max(began, heard) if ended is None else ended) - began for began, ended in job.summary.get("runs", [])
    )
    first = job.summary.get("first_step_seconds")
    lost = tuple(unbilled(job, ledger, heard))
    return Before(
        seconds=seconds,
        gang_seconds=gang_seconds(job, heard),
        first_step_seconds=first,
        ledger=(*ledger, *lost),
        unbilled=lost,
    )


def gang_seconds(job: JobRow, heard: float) -> float:
    """Seconds in which a job had a gang until its driver was last heard of; 0 where an older Warmband drove it.

    Args:
        job: its row, whose summary says since when that driver had one.
        heard: when that was, in unix seconds.
    """
    since = job.summary.get("gang_since")
    return float(job.summary.get("gang_seconds", 0.0)) + (0.0 if since is None else max(0.0, heard - since))


def unbilled(job: JobRow, ledger: Iterable[LedgerRow], heard: float) -> list[LedgerRow]:
    """Rows for the gangs that a driver held when it died: from their last rows on, until it was last heard of.

    Args:
        job: its row, whose summary says which gangs it held.
        ledger: of the job.
        heard: when that was, in unix seconds.
    """
    until: dict[str, float] = defaultdict(float)
    for row in ledger:
        until[row.gang] = max(until[row.gang], row.at)
    return [
        LedgerRow(
            job=job.name,
            gang=gang,
            kind="training",
            worker_seconds=(heard - until[gang]) * workers,
            at=heard,
            workers=workers,
        )
        for gang, workers in (job.summary.get("held") or {}).items()
        if gang in until and heard > until[gang]
    ]


def _whole(row: TrialRow) -> TrialRow:
    """A trial as it was where it goes on from."""
    details = dict(row.details)
    back = details.pop(GOES_ON_FROM, None)
    if back is None:
        return row
    lent = {key: details[key] for key in (SHARED, LENDS) if key in details}
    return replace(row, **{"files": {}, **back, "details": {**back["details"], **lent}})


def _refused(row: TrialRow, reports: list[Report], *, diverged: bool) -> Served:
    return Served(
        gang="",
        trial_id=row.trial_id,
        error=row.failure_reason,
        traceback=row.traceback,
        logs=row.logs,
        diverged=diverged,
        reports=tuple(reports),
    )
