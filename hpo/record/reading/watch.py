"""Watch over one job: its rows in memory, and at each look what has changed since the last."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa

from hpo.record.database import explained
from hpo.record.reading.mark import Mark, marks
from hpo.record.reading.row import rows
from hpo.record.tables import (
    ACTS,
    ADDITIONS,
    JOBS,
    LEDGER,
    LINES,
    REPORTS,
    TRIALS,
    ActRow,
    AdditionRow,
    JobRow,
    LedgerRow,
    LineRow,
    ReportRow,
    TrialRow,
)
from trainers.errors import NoJobError

_AT_ONCE = 200
"""Keys of a query: databases limit how many there may be."""

_ALL_EVERY = 20
"""Looks between two that compare all trials: one that has ended changes when its checkpoint is dropped, say."""

_LAST = "g"
"""Behind all ids of a writer, which are hexadecimal digits, a hyphen and a number."""

_SEEN = (
    TRIALS.c.trial_id,
    TRIALS.c.status,
    TRIALS.c.resource,
    TRIALS.c.objective,
    TRIALS.c.best_objective,
    TRIALS.c.attempts,
    TRIALS.c.started_at,
    TRIALS.c.ended_at,
    TRIALS.c.checkpoint,
)
"""What tells a trial that has changed from one that has not."""

_STEPS = (REPORTS.c.trial_id, REPORTS.c.step)

_Told = TypeVar("_Told", LedgerRow, LineRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What has changed of a job since the last look; rows are as they are now.

    Args:
        job: whether its own row has.
        trials, reports, lines, ledger, additions, acts: new rows and changed ones.
    """

    job: bool = False
    trials: Sequence[TrialRow] = ()
    reports: Sequence[ReportRow] = ()
    lines: Sequence[LineRow] = ()
    ledger: Sequence[LedgerRow] = ()
    additions: Sequence[AdditionRow] = ()
    acts: Sequence[ActRow] = ()

    def __bool__(self) -> bool:
        return self.job


@dataclass(slots=True)
class _Ids:
    """The last id that was read of each writer of a job."""

    last: dict[str, str] = field(default_factory=dict)


class Watch:
    """One job's rows, kept up to date by looks. Not safe to share between threads that look at the same time.

    Reports and lines are not kept: the first look tells none of those that were there before.

    Args:
        engine: of the database.
        url: of the database, for messages.
        clock: the database's own time.
        name: the job's.
    """

    def __init__(self, engine: sa.Engine, url: str, clock: sa.ColumnElement[float], name: str) -> None:
        self.name = name
        self._engine, self._url, self._clock = engine, url, clock
        self.mark: Mark | None = None
        self.job: JobRow = JobRow(name=self.name, created_at=0.0)
        self.trials: dict[str, TrialRow] = {}
        """By id, the un-tuned run among them."""
        self.additions: list[AdditionRow] = []
        self.acts: list[ActRow] = []
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        """Billed worker-seconds by trial, which is empty for a gang's own, and kind."""
        self._seen: dict[str, tuple[Any, ...]] = {}
        self._steps: dict[str, tuple[int, int]] = {}
        """The attempts of a trial when its last step was read, and that step."""
        self._lines, self._ledger = _Ids(), _Ids()
        self._looks = 0

    def look(self) -> Changes:
        """Reads what has changed; at the first look, all but reports and lines.

        Raises:
            NoJobError: there is no such job any more.
            WarmbandError: the database cannot be read.
        """
        with explained(self._url, "read"), self._engine.connect() as connection:
            mark = marks(connection, self._clock, [self.name]).get(self.name)
            created_at = self.job.created_at or (mark and mark.created_at)
            if mark is None or mark.created_at != created_at:
                raise NoJobError(f"there is no job {self.name!r} in {self._url} any more; it was deleted")
            if mark == self.mark:
                return Changes()
            changes = self._changes(connection, first=self.mark is None)
            self.mark = mark  # Where a read fails, the next look reads again.
            return changes

    def _changes(self, connection: sa.Connection, *, first: bool) -> Changes:
        silent = (self._clock - JOBS.c.heartbeat).label("silent")
        (self.job,) = rows(connection, JobRow, sa.select(JOBS, silent).where(JOBS.c.name == self.name))
        trials = self._new_trials(connection, everything=self._looks % _ALL_EVERY == 0)
        self._looks += 1
        if first:
            self._begin_reports(connection)
            reports: list[ReportRow] = []
        else:
            reports = self._new_reports(connection, trials)
        ledger = list(self._new_rows(connection, LedgerRow, LEDGER, self._ledger))
        for bill in ledger:
            self.seconds[bill.trial_id, bill.kind] += bill.worker_seconds
        lines = [] if first else sorted(self._new_rows(connection, LineRow, LINES, self._lines), key=_by_time)
        if first:
            self._skip(connection, LINES, self._lines)
        additions, acts = self._new_additions(connection), self._new_acts(connection)
        for row in trials:
            self.trials[row.trial_id] = row
        changed = () if first else trials
        bills = () if first else ledger
        return Changes(
            job=True, trials=changed, reports=reports, lines=lines, ledger=bills, additions=additions, acts=acts
        )

    def since(self, at: float, most: int) -> Changes | None:
        """What may have changed since a moment, for who has seen all until then; rows may be among it that it has seen.

        Args:
            at: unix seconds, by the driver's clock.
            most: rows; None is returned where there are more.
        """
        with explained(self._url, "read"), self._engine.connect() as connection:
            newer = {table: (table.c.job == self.name, table.c.at >= at) for table in (REPORTS, LINES, LEDGER)}
            count = sum(connection.scalar(sa.select(sa.func.count()).where(*each)) or 0 for each in newer.values())
            trials = [each for each in self.trials.values() if each.ended_at is None or each.ended_at >= at]
            if count + len(trials) > most:
                return None
            return Changes(
                job=True,
                trials=sorted(trials, key=lambda trial: trial.number),
                reports=list(rows(connection, ReportRow, sa.select(REPORTS).where(*newer[REPORTS]).order_by(*_STEPS))),
                lines=sorted(rows(connection, LineRow, sa.select(LINES).where(*newer[LINES])), key=_by_time),
                ledger=list(rows(connection, LedgerRow, sa.select(LEDGER).where(*newer[LEDGER]).order_by(LEDGER.c.id))),
                additions=list(self.additions),
                acts=list(self.acts),
            )

    # ---- trials

    def _new_trials(self, connection: sa.Connection, *, everything: bool) -> list[TrialRow]:
        """The trials that are new or have changed, by number."""
        of_job = TRIALS.c.job == self.name
        highest = max((trial.number for trial in self.trials.values()), default=-math.inf)
        query = sa.select(*_SEEN).where(of_job)
        if not everything and highest > -math.inf:
            query = query.where(sa.or_(TRIALS.c.ended_at.is_(None), TRIALS.c.number > highest))
        found = {row[0]: tuple(row) for row in connection.execute(query)}
        changed = [trial for trial, row in found.items() if self._seen.get(trial) != row]
        changed += [
            each.trial_id for each in self.trials.values() if each.ended_at is None and each.trial_id not in found
        ]
        read = list(self._trials(connection, changed))
        for trial in read:
            self._seen[trial.trial_id] = tuple(getattr(trial, column.name) for column in _SEEN)
        return sorted(read, key=lambda trial: trial.number)

    def _trials(self, connection: sa.Connection, ids: Sequence[str]) -> Iterator[TrialRow]:
        for some in _parts(ids):
            query = sa.select(TRIALS).where(TRIALS.c.job == self.name, TRIALS.c.trial_id.in_(some))
            yield from rows(connection, TrialRow, query)

    # ---- reports

    def _begin_reports(self, connection: sa.Connection) -> None:
        """Notes the last steps of the trials that have not ended: all up to there were told already."""
        active = [trial for trial, seen in self._seen.items() if seen[-2] is None]
        for some in _parts(active):
            of_them = (REPORTS.c.job == self.name, REPORTS.c.trial_id.in_(some))
            last = sa.select(REPORTS.c.trial_id, sa.func.max(REPORTS.c.step)).where(*of_them)
            for trial, step in connection.execute(last.group_by(REPORTS.c.trial_id)):
                self._steps[trial] = (self._seen[trial][5], step)

    def _new_reports(self, connection: sa.Connection, changed: Iterable[TrialRow]) -> list[ReportRow]:
        """The reports of trials that run or have just changed, behind those that were read; by trial and step."""
        active = {trial.trial_id: trial for trial in self.trials.values() if trial.status == "Running"}
        active |= {trial.trial_id: trial for trial in changed}
        behind = [(trial.trial_id, self._last_step(trial)) for trial in active.values()]
        found: list[ReportRow] = []
        for some in _parts(behind):
            after = [sa.and_(REPORTS.c.trial_id == trial, REPORTS.c.step > step) for trial, step in some]
            query = sa.select(REPORTS).where(REPORTS.c.job == self.name, sa.or_(*after))
            found += rows(connection, ReportRow, query.order_by(REPORTS.c.trial_id, REPORTS.c.step))
        for row in found:
            self._steps[row.trial_id] = (active[row.trial_id].attempts, row.step)
        return found

    def _last_step(self, trial: TrialRow) -> int:
        """The step behind which reports of a trial are new."""
        before = self.trials.get(trial.trial_id)
        # All of one that had ended at the first look was told before it.
        told = (trial.attempts, -1) if before is None else (before.attempts, before.resource)
        attempts, step = self._steps.get(trial.trial_id, told)
        # One that is tried again reports the same steps once more, maybe with other values.
        return step if attempts == trial.attempts else -1

    # ---- rows whose ids a writer counts

    def _new_rows(self, connection: sa.Connection, row: type[_Told], table: sa.Table, ids: _Ids) -> Iterator[_Told]:
        """The rows behind the last of each writer. Ids are in order of a writer's, and writers are few."""
        for writer in self._writers(connection, table):
            last = ids.last.get(writer, writer)
            behind = (table.c.job == self.name, table.c.id > last, table.c.id < writer + _LAST)
            for each in rows(connection, row, sa.select(table).where(*behind).order_by(table.c.id)):
                ids.last[writer] = each.id
                yield each

    def _skip(self, connection: sa.Connection, table: sa.Table, ids: _Ids) -> None:
        """Notes the last row of each writer without reading those before."""
        for writer in self._writers(connection, table):
            of_it = (table.c.job == self.name, table.c.id >= writer, table.c.id < writer + _LAST)
            ids.last[writer] = connection.scalar(sa.select(sa.func.max(table.c.id)).where(*of_it)) or writer

    def _writers(self, connection: sa.Connection, table: sa.Table) -> list[str]:
        """What the ids of each writer begin with, found by one jump over the table's key for each."""
        found: list[str] = []
        while True:
            behind = found[-1] + _LAST if found else ""
            first = sa.select(sa.func.min(table.c.id)).where(table.c.job == self.name, table.c.id > behind)
            if (row := connection.scalar(first)) is None:
                return found
            found.append(row.partition("-")[0])

    def _new_additions(self, connection: sa.Connection) -> list[AdditionRow]:
        known = {row.id for row in self.additions}
        query = sa.select(ADDITIONS).where(ADDITIONS.c.job == self.name).order_by(ADDITIONS.c.at, ADDITIONS.c.id)
        self.additions = list(rows(connection, AdditionRow, query))
        return [row for row in self.additions if row.id not in known]

    def _new_acts(self, connection: sa.Connection) -> list[ActRow]:
        known = {row.id for row in self.acts}
        of_it = (ACTS.c.job == self.name, ACTS.c.gone_at.is_(None))
        self.acts = list(rows(connection, ActRow, sa.select(ACTS).where(*of_it).order_by(ACTS.c.at, ACTS.c.id)))
        return [row for row in self.acts if row.id not in known]


def _by_time(row: LineRow) -> tuple[float, str]:
    return row.at, row.id


_Key = TypeVar("_Key")


def _parts(keys: Sequence[_Key]) -> Iterator[Sequence[_Key]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]
