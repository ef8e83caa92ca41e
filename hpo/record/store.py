"""The record of jobs, trials, reports, billed seconds, printed lines, given trials and acts of persons, in SQL.

A job has one writer, which queues rows and writes them in batches; any number of readers look on. Times are unix
seconds. SQLite serves one machine; a PostgreSQL URL serves many.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from hpo.record import tables
from hpo.record.acts import Asked, acted, actor, stops_in
from hpo.record.batch import ROWS_AT_ONCE, job_changes, upsert
from hpo.record.database import (
    NOT_THERE,
    clock,
    explained,
    file_of,
    is_missing,
    make_private,
    open_engine,
    shown,
)
from hpo.record.lease import is_dead, left_behind, refusal, this_process
from hpo.record.reading import Key, Mark, TrialQuery, Watch, curves, found_trials, marks, rows
from hpo.record.schema import prepare
from hpo.record.tables import ActKind, ActRow, AdditionRow, JobRow, LedgerRow, LineRow, ReportRow, TrialRow
from hpo.record.tags import retag
from hpo.record.totals import Totals, begun_and_waiting, billed, totals_of, units_trained
from hpo.record.writer import JobWriter
from hpo.text import holds_secret
from trainers import steady
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError, NoJobError, RecordMissingError, WarmbandError

__all__ = ["JobRow", "JobWriter", "LedgerRow", "LineRow", "ReportRow", "Store", "TrialRow"]

_JOB_VALUES = tables.checked(tables.JOBS)
_ADDITION_VALUES = tables.checked(tables.ADDITIONS)
_LINE_VALUES = tables.checked(tables.LINES)
_Row = TypeVar("_Row", JobRow, TrialRow, ReportRow, LedgerRow, LineRow, AdditionRow, ActRow)


class Store:
    """The record; safe to share between threads, not across a fork.

    A method that takes a job's name raises ConfigurationError where there is no such job, naming the nearest; all raise
    WarmbandError where the database cannot be read or written.

    Args:
        url: a SQLAlchemy URL of SQLite or PostgreSQL; by default the environment's, see `open_engine`.
        make: makes the file of a record in SQLite that is not there; False is for a job that is in it.

    Raises:
        RecordMissingError: the file is not there, and is not to be made.
        ConfigurationError: the URL is wrong, the database cannot be opened, or another version of Warmband wrote it.
            A SQLite file of an older one is brought up to this; a PostgreSQL database is by `hpo db upgrade`.
    """

    def __init__(self, url: str | None = None, *, make: bool = True) -> None:
        self._engine = open_engine(url)
        if not make and is_missing(self._engine):
            raise RecordMissingError(
                f"the record, {file_of(self._engine)}, {NOT_THERE} Put it back, or a copy of it, or name another in "
                "WARMBAND_STORE"
            )
        self._clock = clock(self._engine)
        self.url = shown(self._engine.url)
        self.has_secret = holds_secret(self._engine.url.render_as_string(hide_password=False))
        """Whether `url` leaves a password out."""
        make_private(self._engine)
        with explained(self.url, "opened", ConfigurationError):
            prepare(self._engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_job(self, job: JobRow, by: str = "") -> None:
        """Records a new job, heard of now.

        Args:
            job: its row.
            by: who creates it; empty is whoever acts here, see `hpo.record.acting`, or its owner.

        Raises:
            ConfigurationError: there is one of that name.
        """
        who = actor()
        cloned: dict[str, Any] = {"of": who.clone_of} if who.clone_of else {}
        try:
            with explained(self.url, "written"), self._engine.begin() as connection:
                connection.execute(sa.insert(tables.JOBS).values({**_JOB_VALUES(job), "heartbeat": self._clock}))
                kind: ActKind = "cloned" if cloned else "created"
                acted(connection, self._clock, job.name, kind, cloned, by or who.by or job.owner)
        except WarmbandError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            raise ConfigurationError(
                f"a job named {job.name!r} is already in {self.url}; give another name, --name on the command line and "
                f"job_name in Python, or use that job: hpo describe {job.name}"
            ) from None

    def job(self, name: str) -> JobRow:
        """The job of that name."""
        for row in self._read(JobRow, tables.JOBS, {"name": name}):
            return row
        names = self._names()
        hint = did_you_mean(name, names, cutoff=0.5) or f"; it has {', '.join(map(repr, names[:3])) or 'none'}"
        raise NoJobError(f"no job named {name!r} in {self.url}{hint}")

    def jobs(self) -> list[JobRow]:
        """Every job, newest first."""
        return self._read(JobRow, tables.JOBS, {}, "created_at", "name")[::-1]

    def trials(self, name: str) -> list[TrialRow]:
        """A job's trials, in the order in which they were suggested."""
        return self._read(TrialRow, tables.TRIALS, {"job": name}, "number") or self._none(name)

    def find_trials(self, query: TrialQuery) -> list[tuple[Key, TrialRow]]:
        """The tuned trials that a query asks for, with the keys that they are ordered by."""
        with explained(self.url, "read"), self._engine.connect() as connection:
            return found_trials(connection, query)

    def reports(self, name: str, trial_id: str | None = None) -> list[ReportRow]:
        """A job's reports, or one trial's, by trial and step."""
        where = {"job": name} if trial_id is None else {"job": name, "trial_id": trial_id}
        return self._read(ReportRow, tables.REPORTS, where, "trial_id", "step") or self._none(name)

    def each_report(self, name: str) -> Iterator[ReportRow]:
        """A job's reports likewise, of which few are in memory at a time; none where there is no such job."""
        return self._rows(ReportRow, tables.REPORTS, {"job": name}, "trial_id", "step")

    def ledger(self, name: str) -> list[LedgerRow]:
        """A job's billed seconds, by time."""
        return self._read(LedgerRow, tables.LEDGER, {"job": name}, "at", "id") or self._none(name)

    def marks(self) -> dict[str, Mark]:
        """What tells whether jobs have changed, by name; cheap, as all who follow jobs ask for it all the time."""
        with explained(self.url, "read"), self._engine.connect() as connection:
            return marks(connection, self._clock)

    def watch(self, name: str) -> Watch:
        """A watch over a job, which reads what changes of it."""
        return Watch(self._engine, self.url, self._clock, self.job(name).name)

    def curves(self, name: str, metric: str | None = None) -> Iterator[tuple[str, int, float | None]]:
        """A job's learning curves by trial and step: the trial, the step and the value, None where it is not finite.

        Args:
            name: the job's.
            metric: None is its objective.
        """
        with explained(self.url, "read"), self._engine.connect() as connection:
            yield from curves(connection, name, metric)

    def totals(self, jobs: Iterable[JobRow]) -> dict[str, Totals]:
        """The totals of jobs' trials and bills, by name; no trial and no bill is read for them."""
        with explained(self.url, "read"), self._engine.connect() as connection:
            return totals_of(connection, jobs)

    def billed(self, name: str) -> dict[tuple[str, str], float]:
        """A job's billed worker-seconds, by trial and kind; those of a gang's own are under no trial's name."""
        with explained(self.url, "read"), self._engine.connect() as connection:
            return billed(connection, name) or dict(self._none(name))

    def units_trained(self, name: str) -> int:
        """Return the units that a job's trials trained, its un-tuned run among them; 0 where there is no such job."""
        with explained(self.url, "read"), self._engine.connect() as connection:
            return units_trained(connection, name)

    def lines(self, name: str) -> list[LineRow]:
        """What a job's drivers said, by time."""
        return self._read(LineRow, tables.LINES, {"job": name}, "at", "id") or self._none(name)

    def line(self, row: LineRow) -> None:
        """Records a line of a job that is not its driver's, in the place of one of that id."""
        self.job(row.job)
        with explained(self.url, "written"), self._engine.begin() as connection:
            connection.execute(upsert(self._engine, tables.LINES), _LINE_VALUES(row))

    def additions(self, name: str) -> list[AdditionRow]:
        """The values that persons gave for trials of a job, those that no trial has taken yet among them, by time."""
        return self._read(AdditionRow, tables.ADDITIONS, {"job": name}, "at", "id") or self._none(name)

    def acts(self, name: str | None = None) -> list[ActRow]:
        """What persons did to a job, by time; to those of that name which were deleted, where none is there.

        Args:
            name: the job's; None is every job, deleted ones among them.

        Raises:
            ConfigurationError: there is no such job, and never was one.
        """
        where = {} if name is None else {"job": name}
        found = self._read(ActRow, tables.ACTS, where, "at", "id")
        there = [row for row in found if row.gone_at is None] if name is not None else found
        return there or found or (self._none(name) if name is not None else [])

    def act(self, name: str, kind: ActKind, arguments: Mapping[str, Any], by: str = "") -> ActRow:
        """Records what a person did to a job, where nothing else of the record changes by it.

        Args:
            name: the job's.
            kind: what was done.
            arguments: with what.
            by: who did it; empty is whoever acts here.
        """
        self.job(name)
        with explained(self.url, "written"), self._engine.begin() as connection:
            return acted(connection, self._clock, name, kind, arguments, by)

    def add_trial(
        self,
        name: str,
        hyperparameters: Mapping[str, Any],
        check: Callable[[JobRow, int, int], None],
        by: str = "",
    ) -> AdditionRow:
        """Gives values for one of the next trials of a job; its writer sees that within a second or two.

        Args:
            name: the job's.
            hyperparameters: the values, by name.
            check: what it raises leaves the record as it is; it is given the job's row, how many of its trials have
                begun and how many additions no trial has taken. Nobody else adds one in between.
            by: who gives them; empty is whoever acts here.
        """
        job = tables.JOBS.c.name == name
        with explained(self.url, "written"), self._engine.begin() as connection:
            connection.execute(sa.update(tables.JOBS).where(job).values(name=name))  # Who adds one as well, waits.
            check(self.job(name), *begun_and_waiting(connection, name))
            values, addition = dict(hyperparameters), uuid.uuid4().hex
            what = {"hyperparameters": values, "addition": addition}
            now = acted(connection, self._clock, name, "trial_added", what, by).at
            row = AdditionRow(job=name, hyperparameters=values, at=now, id=addition)
            connection.execute(sa.insert(tables.ADDITIONS).values(_ADDITION_VALUES(row)))
        return row

    def stop_trial(
        self, name: str, trial_id: str, check: Callable[[JobRow, TrialRow | None], None], by: str = ""
    ) -> None:
        """Asks for a trial of a job to be stopped; its writer sees that within a second or two.

        Args:
            name: the job's.
            trial_id: the trial's.
            check: what it raises leaves the record as it is; it is given the rows of the job and of the trial, None
                where there is none of that id.
            by: who asks; empty is whoever acts here. The first one to ask counts.
        """
        job = tables.JOBS.c.name == name
        with explained(self.url, "written"), self._engine.begin() as connection:
            connection.execute(sa.update(tables.JOBS).where(job).values(name=name))  # Who asks as well, waits.
            found = self._read(TrialRow, tables.TRIALS, {"job": name, "trial_id": trial_id})
            check(self.job(name), found[0] if found else None)
            if trial_id not in self.stops(name):
                acted(connection, self._clock, name, "trial_stopped", {"trial": trial_id}, by)

    def stops(self, name: str) -> dict[str, str]:
        """Who asked for which trial of a job to be stopped, by the trial's id."""
        found = self._read(ActRow, tables.ACTS, {"job": name, "kind": "trial_stopped"}, "at", "id")
        return stops_in([row for row in found if row.gone_at is None])

    def tag(self, name: str, change: Callable[[dict[str, str]], dict[str, str]]) -> dict[str, str]:
        """Changes the tags of a job, also of one that runs, and returns those that it has then; see `tags.retag`."""
        self.job(name)
        with explained(self.url, "written"), self._engine.begin() as connection:
            return retag(connection, self._clock, name, change)

    def request_stop(self, name: str, by: str = "") -> bool:
        """Asks a job to stop; its writer sees that within a second or two.

        Args:
            name: the job's.
            by: who asks; empty is whoever acts here.

        Returns:
            Whether it is asked to; not where it has ended.
        """
        running = sa.update(tables.JOBS).where(tables.JOBS.c.name == name, tables.JOBS.c.status == "InProgress")
        with explained(self.url, "written"), self._engine.begin() as connection:
            if connection.execute(running.values(status="Stopping")).rowcount:
                acted(connection, self._clock, name, "stopped", by=by)
                return True
        return self.job(name).status == "Stopping"

    def writer(self, name: str, driver: Mapping[str, Any] | None = None) -> JobWriter:
        """The one writer of a job, which holds its lease until it is closed; close it before the store.

        The lease is free, or its holder has not been heard of for `LOST_AFTER` seconds, or was a process of this
        machine that is gone.

        Args:
            name: the job's.
            driver: what is known of where this process runs, beside what `hpo.record.lease.this_process` tells.

        Raises:
            LeaseError: another process drives the job.
        """
        return self._take(name, driver or {}, "driven from here")

    def _take(self, name: str, driver: Mapping[str, Any], what: str) -> JobWriter:
        """The writer of a job; where another has it, the error says `what` cannot be done."""
        lease, before = uuid.uuid4().hex, self.job(name)
        values = {
            "lease": lease,
            "driver": tables.encode(
                {**this_process(), "ahead": self._ahead(), tables.HEARD_BEFORE: before.held_until, **driver}
            ),
            "heartbeat": self._clock,
        }
        if not self._write(sa.update(tables.JOBS).where(self._free(before)).values(values)):
            raise refusal(self.job(name), what)
        asked = Asked(job=name, additions=self.additions(name), stops=self.stops(name))
        return JobWriter(self._engine, self.url, self.job(name), lease, left_behind(before), asked)

    def update_job(
        self,
        name: str,
        change: Callable[[JobRow], Mapping[str, Any]] = lambda job: {},
        *,
        acts: Mapping[ActKind, Mapping[str, Any]] | None = None,
        **changes: Any,
    ) -> None:
        """Changes fields of a job that nobody drives, as `JobWriter.job` does.

        Args:
            name: the job's.
            change: further changes, made of its row as it is then: nobody else changes that in between. What it raises
                leaves the row as it is.
            acts: what the person did by that who acts here, by kind, each with its arguments.
            **changes: by field.

        Raises:
            LeaseError: a process drives the job.
        """
        free, values = sa.update(tables.JOBS).where(self._free(self.job(name))), job_changes(changes)
        with explained(self.url, "written"), self._engine.begin() as connection:
            # A write comes first: it locks the row, and others that want to write wait. A reader sees it as it was.
            if not connection.execute(free.values(values or {"name": name})).rowcount:
                raise refusal(self.job(name), "changed")
            if more := job_changes(change(self.job(name))):
                connection.execute(free.values(more))
            for kind, arguments in (acts or {}).items():
                acted(connection, self._clock, name, kind, arguments)

    def delete_job(
        self, name: str, remove: Callable[[], object] = lambda: None, *, by: str = "", why: str = ""
    ) -> None:
        """Deletes a job that nobody drives, and all that the record holds of it but the acts of persons.

        Args:
            name: the job's.
            remove: removes its files first, with its lease in hand, so that nobody goes on with the job meanwhile. What
                it raises leaves the record as it is: what could not be removed is still in it.
            by: who deletes it; empty is whoever acts here.
            why: a reason to keep, where no person has asked for it.

        Raises:
            LeaseError: a process drives the job.
        """
        before = self.job(name)
        with self._take(name, {}, "deleted") as writer:
            try:
                remove()
            except BaseException:
                writer.job(driver={**before.driver, tables.HEARD_BEFORE: before.held_until})
                raise
            left = {"status": before.status, "owner": before.owner, "created_at": before.created_at}
            writer.delete({**left, "why": why} if why else left, by)

    def _free(self, job: JobRow) -> sa.ColumnElement[bool]:
        """The condition that a job is there and nobody drives it."""
        silent = self._clock - tables.JOBS.c.heartbeat > tables.LOST_AFTER
        gone = tables.JOBS.c.lease == (job.lease if is_dead(job.driver) else "")
        return sa.and_(tables.JOBS.c.name == job.name, sa.or_(tables.JOBS.c.lease == "", gone, silent))

    def _ahead(self) -> float:
        """Seconds by which this machine's clock is ahead of the database's, as far as one question tells."""
        with explained(self.url, "read"), self._engine.connect() as connection:
            return round(steady.now() - float(connection.scalar(sa.select(self._clock)) or 0.0), 3)

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _write(self, statement: sa.Insert | sa.Update) -> int:
        with explained(self.url, "written"), self._engine.begin() as connection:
            return connection.execute(statement).rowcount

    def _read(self, row: type[_Row], table: sa.Table, where: dict[str, str], *order: str) -> list[_Row]:
        return list(self._rows(row, table, where, *order))

    def _rows(self, row: type[_Row], table: sa.Table, where: dict[str, str], *order: str) -> Iterator[_Row]:
        worked_out = [(self._clock - tables.JOBS.c.heartbeat).label("silent")] if table is tables.JOBS else []
        query = sa.select(table, *worked_out).filter_by(**where).order_by(*(table.c[name] for name in order))
        with explained(self.url, "read"), self._engine.connect() as connection:
            if table in tables.OF_JOB:  # Of which there may be very many; so they are not all in memory twice.
                query = query.execution_options(yield_per=ROWS_AT_ONCE)
            yield from rows(connection, row, query)

    def _names(self) -> list[str]:
        """The names of all jobs, the newest first."""
        query = sa.select(tables.JOBS.c.name).order_by(tables.JOBS.c.created_at.desc(), tables.JOBS.c.name.desc())
        with explained(self.url, "read"), self._engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def _none(self, name: str) -> list[Any]:
        self.job(name)  # That there are no rows may be a mistyped name.
        return []
