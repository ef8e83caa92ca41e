"""Writer of one job: rows queued by any thread, sent in batches by one."""

from __future__ import annotations

import logging
import math
import os
import shlex
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from hpo.record import tables
from hpo.record.acts import Asked, act, gone
from hpo.record.batch import WRITTEN, Batch, job_changes, upsert
from hpo.record.database import cause, clock
from hpo.record.lease import holder_of
from hpo.record.record_file import FileLostError, RecordFile, stopped
from hpo.record.tables import ActKind, ActRow, AdditionRow, JobRow, LedgerRow, LineRow, ReportRow, TrialRow
from trainers import steady
from trainers.errors import ConfigurationError, LeaseError, RecordLostError, WarmbandError

FLUSH_EVERY, LOOK_EVERY, BEAT_EVERY, LONGEST_PAUSE = 0.25, 1.0, 5.0, 4.0

MOST_WAITING = 100_000
"""Rows that may wait in memory, some 100 MB; from then on whoever has another one waits too."""

LONGEST_WAIT = 600.0
"""Seconds for which it does."""

CLOCK_SLACK = 5.0
"""Seconds by which clocks may seem to differ from what they did, since a database was slow to answer."""

SURE_WITHIN = 5.0
"""How long a driver that stood still waits for word of its lease, where the database may be away."""

HURRIED_WITHIN = 4.0
"""Seconds for which a job that was asked to stop by a signal waits for its store."""

CLOSE_WITHIN = 120.0
"""Seconds for which a job that has ended waits for its store: a database that is away for half a minute comes back."""

_log = logging.getLogger(__name__)

_VALUES = {table.name: tables.checked(table) for table in WRITTEN}


class JobWriter:
    """Writes one job, whose lease it holds, from a thread of its own. Made by `Store.writer`; a context manager.

    Any thread may call. `job`, `trial`, `report`, `ledger` and `line` only queue; they raise ConfigurationError where a
    value is wrong, and WarmbandError once the writer is closed. What is queued is written within a quarter of a second,
    one transaction a batch. While the database is away or locked, up to `MOST_WAITING` rows wait in memory and are
    tried again; then all but `job` wait as well, which pauses the job, and raise WarmbandError after `LONGEST_WAIT`
    seconds.

    Every heartbeat renews the lease, and every batch is written only while it is held. Once another process has it,
    which it can have after `LOST_AFTER` seconds without a heartbeat, nothing more is written and all raise LeaseError;
    at once, where this process has stood still for so long. Likewise all raise RecordLostError once the file of a
    record in SQLite was removed or replaced; what was recorded is then saved beside it.
    """

    def __init__(
        self,
        engine: sa.Engine,
        url: str,
        job: JobRow,
        lease: str,
        left_behind: str = "",
        asked: Asked | None = None,
    ) -> None:
        self.name, self._lease = job.name, lease
        self.left_behind = left_behind
        """See `hpo.record.lease.left_behind`."""
        self._driver: Mapping[str, Any] = job.driver
        self._engine, self._url = engine, url
        self._upserts = {table.name: upsert(engine, table) for table in WRITTEN}
        self._asked = asked or Asked(job=job.name)
        self._asked.stop = job.status == "Stopping"
        self._deletion: ActRow | None = None
        # Ids that sort as they were queued, and that no other writer gives.
        self._own_id, self._own_ids = uuid.uuid4().hex, 0
        self._changed = threading.Condition()
        self._queue = Batch()
        self._queued = self._written = 0
        self._in_hand = 0
        """Rows that the thread has taken and not written yet."""
        self._given_up = False
        self._closed = self._abandoned = False
        self._close_within = CLOSE_WITHIN
        self._problem: Exception | None = None
        self._taken: LeaseError | None = None
        self._dropped = False
        """Whether something waited when another process took the job over."""
        self._wake = threading.Event()
        self._looked = self._beaten = -math.inf
        self._called = time.monotonic()
        self._file = RecordFile.of(engine, job.name)
        self._thread = threading.Thread(target=self._run, name=f"store writer of {job.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def stop_requested(self) -> bool:
        """Whether someone has asked the job to stop; a second or two old at most."""
        return self._asked.stop

    @property
    def additions(self) -> Sequence[AdditionRow]:
        """The values that persons gave for trials of the job, in the order in which they were heard of."""
        return self._asked.additions

    @property
    def stops(self) -> Mapping[str, str]:
        """Who stops which of the job's trials, by the trial's id, as far as that was heard of."""
        return self._asked.stops

    @property
    def lost_lease(self) -> bool:
        """Whether another process drives the job now, or it was deleted."""
        return self._taken is not None

    def job(self, **changes: Any) -> None:
        """Changes fields of the job. `status="InProgress"` does not undo a stop that was requested."""
        values = job_changes(changes)
        with self._queueing(1) as queue:
            queue.job |= values

    def trial(self, row: TrialRow) -> None:
        """Records a trial as it is now."""
        self._put(tables.TRIALS, row)

    def report(self, *rows: ReportRow) -> None:
        """Records reports; a step that was reported before is replaced."""
        self._put(tables.REPORTS, *rows)

    def ledger(self, *rows: LedgerRow) -> None:
        """Records billed seconds."""
        self._put(tables.LEDGER, *rows)

    def line(self, *rows: LineRow) -> None:
        """Records what the job's driver says."""
        self._put(tables.LINES, *rows)

    def act(self, kind: ActKind, arguments: Mapping[str, Any]) -> None:
        """Records what the person did for whom this process acts."""
        self._put(tables.ACTS, act(self.name, kind, arguments, at=steady.now()))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Writes all rows of the block in one transaction, or none."""
        self._be_sure()
        with self._changed:  # Its lock may be taken again by who holds it.
            yield

    def flush(self, timeout: float = 30.0) -> None:
        """Waits until all that was queued so far is written, and the lease is known to be held.

        Raises:
            WarmbandError: it is not after `timeout` seconds; the rows stay queued.
            LeaseError: another process drives the job; what waited is given up.
        """
        with self._changed:
            if not self._closed:
                self._queue.beat = True
                self._queued += 1
            target = self._queued
            self._wake.set()
            if not self._changed.wait_for(lambda: self._written >= target or self._taken, timeout):
                raise self._late(timeout)
            if self._taken:
                raise self._taken

    def hurry(self) -> None:
        """From now on wait for the store for seconds only, since the process was asked to end.

        The handler of a signal may call it.
        """
        self._close_within = HURRIED_WITHIN
        if self._file is not None:
            self._file.hurry()

    def close(self, timeout: float | None = None) -> None:
        """Writes what waits, gives the lease back and ends the thread; nothing can be queued afterwards.

        Args:
            timeout: seconds; None is two minutes, or seconds after `hurry`.

        Raises:
            WarmbandError: rows still wait after `timeout` seconds; they are given up.
            LeaseError: rows waited when another process took the job over; they are given up.
        """
        within = self._close_within if timeout is None else timeout
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._wake.set()
        self._thread.join(within)
        if self._thread.is_alive() and not self._abandoned:
            self._abandoned = True
            self._wake.set()
            raise WarmbandError(
                f"{self._late(within)}. They are given up, and the record still says that the job is under way; once "
                f"it can be written to, this goes on from what is in it: hpo resume {self.name}"
            )
        if self._taken and self._dropped:
            raise self._taken

    def delete(self, arguments: Mapping[str, Any], by: str = "") -> None:
        """Deletes the job with all that the record holds of it but the acts of persons, and closes.

        Args:
            arguments: what is kept of it, beside them.
            by: who deletes it; empty is whoever acts here.

        Raises:
            WarmbandError, LeaseError: as `close` does; the job is as it was then.
        """
        with self._queueing(1) as queue:
            self._deletion = act(self.name, "deleted", arguments, by, at=0.0)
            queue.delete = True
        self.close()

    def _late(self, seconds: float) -> WarmbandError:
        problem = cause(self._problem) if self._problem else "it is locked" * self._is_locked()
        why = f" ({problem})" if problem else ""
        waiting = max(1, self._queue.size + self._in_hand)
        return WarmbandError(
            f"{waiting} rows of job {self.name!r} still wait after {seconds:g} s to be written to "
            f"{self._url}{why}; check that the database is up and that no other program holds it locked"
        )

    def _is_locked(self) -> bool:
        """Return whether a record in SQLite is locked; the thread that writes learns it only after half a minute."""
        return self._file is not None and self._file.is_locked()

    def _be_sure(self) -> None:
        """Asks whether the lease is still held, where this process may have stood still: nobody has called for so long.

        What it would go on with until its thread has asked may be another's by now. Where the database is away, nobody
        has taken the job there: that is waited for but a moment.

        Raises:
            LeaseError: another process drives the job.
        """
        now = time.monotonic()
        silent, self._called = now - self._called, now
        if silent > tables.LOST_AFTER:
            try:
                self.flush(SURE_WITHIN)
            except LeaseError:
                raise
            except WarmbandError as error:
                _log.debug("job %s goes on without word of its lease: %s", self.name, error)

    @contextmanager
    def _queueing(self, rows: int, *, bounded: bool = False) -> Iterator[Batch]:
        self._be_sure()
        with self._changed:
            if bounded and not self._room():
                self._wait_for_room()
            if self._taken:
                raise self._taken
            if self._closed:
                raise WarmbandError(f"the writer of job {self.name!r} is closed; Store.writer gives a new one")
            yield self._queue
            self._queued += rows

    def _room(self) -> bool:
        return self._closed or self._taken is not None or self._queue.size + self._in_hand < MOST_WAITING

    def _wait_for_room(self) -> None:
        """Pauses whoever has more to record; the caller holds the lock, which is free meanwhile."""
        if not self._given_up:
            waiting = self._queue.size + self._in_hand
            _log.warning("job %s pauses: %d rows wait for its store, %s", self.name, waiting, self._url)
            self._wake.set()
            if self._changed.wait_for(self._room, LONGEST_WAIT):
                return
            self._given_up = True  # What is left to record when the job ends does not wait as long again.
        raise self._late(LONGEST_WAIT)

    def _put(self, table: sa.Table, *rows: TrialRow | ReportRow | LedgerRow | LineRow | ActRow) -> None:
        for row in rows:
            if row.job != self.name:
                raise ConfigurationError(f"job is {row.job!r} in a row for the writer of {self.name!r}; give its name")
        held = [_VALUES[table.name](row) for row in rows]
        with self._queueing(len(held), bounded=True) as queue:
            for values in held:
                if values.get("id") == "":
                    values["id"] = f"{self._own_id}-{self._own_ids:09d}"
                    self._own_ids += 1
                queue.add(table, values)

    # ---- the thread

    def _run(self) -> None:
        try:
            self._write_until_closed()
        finally:
            if self._file is not None:
                self._file.close()

    def _write_until_closed(self) -> None:
        batch, pause = Batch(), FLUSH_EVERY
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._abandoned:
                return
            with self._changed:
                batch.extend(self._queue)
                self._queue = Batch()
                self._in_hand = batch.size
                reached, closing = self._queued, self._closed
            try:
                if self._file is not None:
                    self._file.check()
                self._exchange(batch)
            except LeaseError as error:
                self._stop_writing(error, batch)
                return
            except FileLostError as error:
                self._stop_writing(self._saved(batch, str(error)), batch)
                return
            except Exception as error:  # Whatever it is: rows that wait are not lost, a thread that ended loses them.
                pause = min(2 * pause, LONGEST_PAUSE)
                if self._problem is None:
                    _log.warning("job %s waits for its store, %s: %s", self.name, self._url, cause(error))
                self._problem = error
                continue
            if self._file is not None:
                self._file.billed(sum(values["id"].startswith(self._own_id) for values in batch.of(tables.LEDGER)))
            batch, pause = Batch(), FLUSH_EVERY
            with self._changed:
                self._written, self._problem = reached, None
                self._in_hand, self._given_up = 0, False
                self._changed.notify_all()
            if closing:
                self._give_back()
                return

    def _exchange(self, batch: Batch) -> None:
        """Writes the batch if there is one, or a heartbeat if one is due, and looks for what others ask of the job.

        Raises:
            LeaseError: another process has the lease, so that nothing was written.
        """
        if batch.delete:
            self._delete()
            return
        now = time.monotonic()
        if batch.beat or batch.job or batch.rows or now - self._beaten >= BEAT_EVERY:
            with self._engine.begin() as connection:
                # The write comes first: SQLite refuses at once to turn a reading transaction into a writing one.
                # It also locks the job's row, so that nobody takes the lease before the batch is there.
                update = sa.update(tables.JOBS).where(self._mine).values(batch.job_values(clock(self._engine)))
                if not connection.execute(update).rowcount:
                    raise self._refused(connection)
                batch.write_rows(connection, self._upserts)
                self._asked.hear(connection, self._mine)
                driver = self._noted(connection, batch)
            self._beaten, self._driver = now, driver
        elif now - self._looked >= LOOK_EVERY:
            with self._engine.connect() as connection:
                if self._asked.hear(connection, self._mine) is None:
                    raise self._refused(connection)
        else:
            return
        self._looked = now

    def _noted(self, connection: sa.Connection, batch: Batch) -> Mapping[str, Any]:
        """The job's driver, with how far its clock is ahead of the database's: written anew where one was set since.

        `JobRow.heard` goes by it, and so does what gangs are billed for if this process dies.
        """
        driver: Mapping[str, Any] = batch.job.get("driver", self._driver)
        if driver.get("pid") != os.getpid():  # It was put back to that of a process before this.
            return driver
        ahead = steady.now() - float(connection.scalar(sa.select(clock(self._engine))) or 0.0)
        if abs(ahead - float(driver.get("ahead", 0.0))) > CLOCK_SLACK:
            driver = {**driver, "ahead": round(ahead, 3)}
            connection.execute(sa.update(tables.JOBS).where(self._mine).values(driver=driver))
        return driver

    def _delete(self) -> None:
        with self._engine.begin() as connection:
            there = connection.scalar(sa.select(tables.JOBS.c.name).where(tables.JOBS.c.name == self.name))
            # The job first: from then on nobody can take its lease.
            if there and not connection.execute(sa.delete(tables.JOBS).where(self._mine)).rowcount:
                raise self._refused(connection)
            for table in tables.OF_JOB if there else ():
                connection.execute(sa.delete(table).where(table.c.job == self.name))
            if there and self._deletion:
                gone(connection, clock(self._engine), self._deletion)

    @property
    def _mine(self) -> sa.ColumnElement[bool]:
        """The condition that the job is there and its lease is held."""
        return sa.and_(tables.JOBS.c.name == self.name, tables.JOBS.c.lease == self._lease)

    def _refused(self, connection: sa.Connection) -> LeaseError:
        """Says why the lease is not held any more."""
        now = connection.execute(sa.select(tables.JOBS.c.driver).where(tables.JOBS.c.name == self.name)).scalar()
        who = "it was deleted" if now is None else f"{holder_of(now)} took it over"
        return LeaseError(
            f"job {self.name!r} is not driven from here any more: {who}, as it may after {tables.LOST_AFTER:g} s "
            f"without a word from here; what this process still finds is not recorded, so let it end"
        )

    def _stop_writing(self, error: LeaseError, batch: Batch) -> None:
        with self._changed:
            batch.extend(self._queue)
            lost = isinstance(error, RecordLostError)
            self._taken, self._dropped = error, lost or batch.delete or bool(batch.job or batch.rows)
            self._queue = Batch()
            self._in_hand = 0
            self._changed.notify_all()
        _log.error("%s", error)

    def _saved(self, batch: Batch, fault: str) -> RecordLostError:
        """Saves what the record held and what waits beside the record's file; the error that says where.

        Args:
            batch: that waits; what was queued meanwhile goes with it.
            fault: what befell the file.
        """
        assert self._file is not None, "it has a fault"
        record = self._file.path
        with self._changed:
            batch.extend(self._queue)
            self._queue = Batch()

        def write(connection: sa.Connection) -> None:
            values = batch.job_values(sa.literal(steady.now()))
            connection.execute(sa.update(tables.JOBS).where(self._mine).values(values))
            batch.write_rows(connection, self._upserts)
            stopped(connection, self.name, f"its record, {record}, {fault}")

        what = f"the record of job {self.name!r}, {record}, {fault} while the job ran, so that the job ends"
        try:
            saved = self._file.save(self._lease, write)
            copy = sa.URL.create("sqlite", database=str(saved)).render_as_string()
        except Exception as error:  # Whatever it is, the driver has to say what is lost.
            return RecordLostError(
                f"{what}. What the job had recorded cannot be saved ({cause(error)}); put a backup of the record in "
                f"its place, and go on from there: hpo resume {self.name}"
            )
        return RecordLostError(
            f"{what}. All that the job had recorded is saved in {saved}. To go on from there: "
            f"{shlex.join(['hpo', 'resume', self.name, '--store', copy])}. The record of the job is then that copy; "
            "other jobs of the record save copies of their own"
        )

    def _give_back(self) -> None:
        """Lets another process drive the job at once; where that fails, it can a minute later."""
        with suppress(SQLAlchemyError), self._engine.begin() as connection:
            connection.execute(sa.update(tables.JOBS).where(self._mine).values(lease=""))
