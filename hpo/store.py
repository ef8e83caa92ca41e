"""The record of jobs, trials, reports and billed seconds, in SQL.

A job has one writer, which queues rows and writes them in batches; any number of readers look on. Times are unix
seconds. SQLite serves one machine; a PostgreSQL URL serves many. Neither JSON nor SQL has a portable NaN: `encode`
gives JSON words for what is not finite, and float columns hold NULL.
"""

from __future__ import annotations

import difflib
import logging
import math
import operator
import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

from trainers.errors import ConfigurationError, WarmbandError
from trainers.home import home

JobStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
TrialStatus = Literal["Pending", "Running", "Paused", "Completed", "Stopped", "Failed"]
LedgerKind = Literal["starting", "training", "checkpointing", "idle"]

SCHEMA_VERSION = 1
LOST_AFTER = 60.0
FLUSH_EVERY, LOOK_EVERY, BEAT_EVERY, LONGEST_PAUSE = 0.25, 1.0, 5.0, 4.0
BUSY_SECONDS = 30.0

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A tuning job: `spec` holds all it was made with, `heartbeat` when its writer was last heard of."""

    name: str
    status: JobStatus = "InProgress"
    reason: str = ""
    created_at: float
    ended_at: float | None = None
    heartbeat: float
    spec: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    def lost(self, now: float) -> bool:
        """Whether it should be running and its writer has not been heard of for a minute."""
        return self.status in ("InProgress", "Stopping") and now - self.heartbeat > LOST_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A trial: `number` is its place in the order of suggestion, from 0; `resource` the units it has reached.

    `checkpoint` is empty where it was dropped, and `checkpoint_bytes` then says what it took; `logs` names the output
    of the worker that failed it, as "address:path".
    """

    job: str
    trial_id: str
    number: int
    status: TrialStatus = "Pending"
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    bracket: int | None = None
    resource: int = 0
    objective: float | None = None
    best_objective: float | None = None
    best_resource: int | None = None
    checkpoint: str = ""
    checkpoint_bytes: int = 0
    failure_reason: str = ""
    traceback: str = ""
    attempts: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    logs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One unit of a trial's resource. `objective` is None where it is not finite; `metrics` say what it was."""

    job: str
    trial_id: str
    step: int
    objective: float | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """Billed worker-seconds of a gang; `trial_id` is empty for the gang's own. The writer gives the `id`."""

    job: str
    trial_id: str = ""
    gang: str
    kind: LedgerKind
    worker_seconds: float
    at: float
    id: str = ""


_metadata = sa.MetaData()
_TYPES: dict[Any, Any] = {int: sa.BigInteger, float: sa.Float, dict[str, Any]: sa.JSON}


def _table(name: str, row: type, *keys: str) -> sa.Table:
    """The table that holds a dataclass: a column a field, NULL where None may be, words where they are spelled out."""
    hints = get_type_hints(row)
    columns = []
    for each in fields(row):
        options = get_args(hint := hints[each.name])
        optional = NoneType in options
        kind = _TYPES.get(options[0] if optional else hint, sa.Text)
        info = {"words": options} if get_origin(hint) is Literal else {}
        key = each.name in keys
        columns.append(sa.Column(each.name, kind, primary_key=key, autoincrement=False, nullable=optional, info=info))
    return sa.Table(name, _metadata, *columns)


_JOBS = _table("jobs", JobRow, "name")
_TRIALS = _table("trials", TrialRow, "job", "trial_id")
_REPORTS = _table("reports", ReportRow, "job", "trial_id", "step")
# The writer makes the id, not the database: a batch that is written again must not bill again.
_LEDGER = _table("ledger", LedgerRow, "job", "id")
_VERSION = sa.Table("schema_version", _metadata, sa.Column("version", sa.Integer, primary_key=True))

# SQLAlchemy makes these anew whenever it is asked, and every report asks.
_COLUMNS = {table.name: tuple(table.columns) for table in _metadata.sorted_tables}
_KEYS = {name: operator.itemgetter(*(c.name for c in columns if c.primary_key)) for name, columns in _COLUMNS.items()}

_Row = TypeVar("_Row", JobRow, TrialRow, ReportRow, LedgerRow)


def encode(value: Any) -> Any:
    """What JSON can hold of a value: floats that are not finite become words, tuples and arrays lists.

    Raises:
        ConfigurationError: it holds something else than numbers, text, booleans, None, lists and dicts.
    """
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else "NaN" if math.isnan(value) else _NOT_FINITE[1 + (value < 0)]
    if isinstance(value, str):
        # A backslash tells text that reads like one of the words from the number.
        return f"\\{_text(value)}" if value.lstrip("\\") in _NOT_FINITE else _text(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return encode(value.tolist())
    raise ConfigurationError(
        f"{value!r} is a {type(value).__name__}; the store keeps numbers, text, booleans, None, lists and dicts"
    )


def decode(value: Any) -> Any:
    """The reverse of `encode`."""
    if isinstance(value, str):
        return float(value) if value in _NOT_FINITE else value[1:] if value.lstrip("\\") in _NOT_FINITE else value
    if isinstance(value, dict):
        return {key: decode(item) for key, item in value.items()}
    return [decode(item) for item in value] if isinstance(value, list) else value


class Store:
    """The record; safe to share between threads, not across a fork.

    A method that takes a job's name raises ConfigurationError where there is no such job, naming the nearest; all raise
    WarmbandError where the database cannot be read or written.

    Args:
        url: a SQLAlchemy URL of SQLite or PostgreSQL; by default `WARMBAND_STORE`, or `warmband.db` in `home()`.

    Raises:
        ConfigurationError: the URL is wrong, the database cannot be opened, or another version of Warmband wrote it.
    """

    def __init__(self, url: str | None = None) -> None:
        self._engine = _engine(url or os.environ.get("WARMBAND_STORE") or None)
        self.url = self._engine.url.render_as_string(hide_password=True)
        with _explained(self.url, "opened", ConfigurationError):
            _prepare(self._engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_job(self, job: JobRow) -> None:
        """Records a new job.

        Raises:
            ConfigurationError: there is one of that name.
        """
        try:
            self._write(sa.insert(_JOBS).values(_values(_JOBS, job)))
        except WarmbandError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            raise ConfigurationError(
                f"a job named {job.name!r} is already in {self.url}; give another name, or attach to that job"
            ) from None

    def job(self, name: str) -> JobRow:
        """The job of that name."""
        for row in self._read(JobRow, _JOBS, {"name": name}):
            return row
        names = [job.name for job in self.jobs()]
        near = ", ".join(map(repr, difflib.get_close_matches(name, names, cutoff=0.5) or names[:3]))
        raise ConfigurationError(f"no job named {name!r} in {self.url}; " + (f"give {near}" if near else "it has none"))

    def jobs(self) -> list[JobRow]:
        """Every job, newest first."""
        return self._read(JobRow, _JOBS, {}, "created_at", "name")[::-1]

    def trials(self, name: str) -> list[TrialRow]:
        """A job's trials, in the order in which they were suggested."""
        return self._read(TrialRow, _TRIALS, {"job": name}, "number") or self._none(name)

    def reports(self, name: str, trial_id: str | None = None) -> list[ReportRow]:
        """A job's reports, or one trial's, by trial and step."""
        where = {"job": name} if trial_id is None else {"job": name, "trial_id": trial_id}
        return self._read(ReportRow, _REPORTS, where, "trial_id", "step") or self._none(name)

    def ledger(self, name: str) -> list[LedgerRow]:
        """A job's billed seconds, by time."""
        return self._read(LedgerRow, _LEDGER, {"job": name}, "at", "id") or self._none(name)

    def request_stop(self, name: str) -> bool:
        """Asks a job to stop; its writer sees that within a second or two. False if it has ended."""
        running = sa.update(_JOBS).where(_JOBS.c.name == name, _JOBS.c.status == "InProgress")
        return self._write(running.values(status="Stopping")) > 0 or self.job(name).status == "Stopping"

    def writer(self, name: str) -> JobWriter:
        """The one writer of a job; close it before the store."""
        return JobWriter(self._engine, self.url, self.job(name))

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _write(self, statement: sa.Insert | sa.Update) -> int:
        with _explained(self.url, "written"), self._engine.begin() as connection:
            return connection.execute(statement).rowcount

    def _read(self, row: type[_Row], table: sa.Table, where: dict[str, str], *order: str) -> list[_Row]:
        query = sa.select(table).filter_by(**where).order_by(*(table.c[name] for name in order))
        with _explained(self.url, "read"), self._engine.connect() as connection:
            found = connection.execute(query).mappings().all()
        nested = [column.name for column in table.columns if isinstance(column.type, sa.JSON)]
        return [row(**{**values, **{name: decode(values[name]) for name in nested}}) for values in found]

    def _none(self, name: str) -> list[Any]:
        self.job(name)  # That there are no rows may be a mistyped name.
        return []


@dataclass(slots=True)
class _Batch:
    """What waits to be written: changes of the job, and by table the last values of each primary key."""

    job: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)

    def add(self, table: sa.Table, values: dict[str, Any]) -> None:
        self.rows.setdefault(table.name, {})[_KEYS[table.name](values)] = values

    def extend(self, later: _Batch) -> None:
        self.job |= later.job
        for table, rows in later.rows.items():
            self.rows.setdefault(table, {}).update(rows)


class JobWriter:
    """Writes one job from a thread of its own. Made by `Store.writer`; use it as a context manager.

    Any thread may call. `job`, `trial`, `report` and `ledger` only queue; they raise ConfigurationError where a value
    is wrong, and WarmbandError once the writer is closed. What is queued is written within a quarter of a second, one
    transaction a batch. While the database is away or locked, rows wait in memory and are tried again.
    """

    def __init__(self, engine: sa.Engine, url: str, job: JobRow) -> None:
        self.name = job.name
        self._engine, self._url = engine, url
        self._upserts = {table.name: _upsert(engine, table) for table in (_TRIALS, _REPORTS, _LEDGER)}
        self._stop_requested = job.status == "Stopping"
        # Ids that sort as they were queued, and that no other writer gives.
        self._ledger_id, self._ledger_rows = uuid.uuid4().hex, 0
        self._changed = threading.Condition()
        self._queue = _Batch()
        self._queued = self._written = 0
        self._closed = self._abandoned = False
        self._problem: Exception | None = None
        self._wake = threading.Event()
        self._looked = self._beaten = -math.inf
        self._thread = threading.Thread(target=self._run, name=f"store writer of {job.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def stop_requested(self) -> bool:
        """Whether someone has asked the job to stop; a second or two old at most."""
        return self._stop_requested

    def job(self, **changes: Any) -> None:
        """Changes fields of the job. `status="InProgress"` does not undo a stop that was requested."""
        names = [column.name for column in _JOBS.columns if column.name not in ("name", "heartbeat")]
        for unknown in changes.keys() - set(names):
            raise ConfigurationError(f"a job has no field {unknown!r} to change; give one of {', '.join(names)}")
        values = {name: _value(_JOBS.c[name], value) for name, value in changes.items()}
        with self._queueing(1) as queue:
            queue.job |= values

    def trial(self, row: TrialRow) -> None:
        """Records a trial as it is now."""
        self._put(_TRIALS, row)

    def report(self, *rows: ReportRow) -> None:
        """Records reports; a step that was reported before is replaced."""
        self._put(_REPORTS, *rows)

    def ledger(self, *rows: LedgerRow) -> None:
        """Records billed seconds."""
        self._put(_LEDGER, *rows)

    def flush(self, timeout: float = 30.0) -> None:
        """Waits until all that was queued so far is written.

        Raises:
            WarmbandError: it is not after `timeout` seconds; the rows stay queued.
        """
        with self._changed:
            target = self._queued
            self._wake.set()
            if not self._changed.wait_for(lambda: self._written >= target, timeout):
                raise self._late(timeout)

    def close(self, timeout: float = 30.0) -> None:
        """Writes what waits and ends the thread; nothing can be queued afterwards.

        Raises:
            WarmbandError: rows still wait after `timeout` seconds; they are given up.
        """
        with self._changed:
            self._closed = True
        self._wake.set()
        self._thread.join(timeout)
        if self._thread.is_alive() and not self._abandoned:
            self._abandoned = True
            self._wake.set()
            raise self._late(timeout)

    def _late(self, seconds: float) -> WarmbandError:
        why = f" ({_cause(self._problem)})" if self._problem else ""
        return WarmbandError(
            f"{self._queued - self._written} rows of job {self.name!r} still wait after {seconds:g} s to be written to "
            f"{self._url}{why}; check that the database is up and that no other program holds it locked"
        )

    @contextmanager
    def _queueing(self, rows: int) -> Iterator[_Batch]:
        with self._changed:
            if self._closed:
                raise WarmbandError(f"the writer of job {self.name!r} is closed; Store.writer gives a new one")
            yield self._queue
            self._queued += rows

    def _put(self, table: sa.Table, *rows: TrialRow | ReportRow | LedgerRow) -> None:
        for row in rows:
            if row.job != self.name:
                raise ConfigurationError(f"job is {row.job!r} in a row for the writer of {self.name!r}; give its name")
        checked = [_values(table, row) for row in rows]
        with self._queueing(len(checked)) as queue:
            for values in checked:
                if table is _LEDGER and not values["id"]:
                    values["id"] = f"{self._ledger_id}-{self._ledger_rows:09d}"
                    self._ledger_rows += 1
                queue.add(table, values)

    # ---- the thread

    def _run(self) -> None:
        batch, pause = _Batch(), FLUSH_EVERY
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._abandoned:
                return
            with self._changed:
                batch.extend(self._queue)
                self._queue = _Batch()
                reached, closing = self._queued, self._closed
            try:
                self._exchange(batch)
            except Exception as error:  # Whatever it is: rows that wait are not lost, a thread that ended loses them.
                pause = min(2 * pause, LONGEST_PAUSE)
                if self._problem is None:
                    _log.warning("job %s waits for its store, %s: %s", self.name, self._url, _cause(error))
                self._problem = error
                continue
            batch, pause = _Batch(), FLUSH_EVERY
            with self._changed:
                self._written, self._problem = reached, None
                self._changed.notify_all()
            if closing:
                return

    def _exchange(self, batch: _Batch) -> None:
        """Writes the batch if there is one, or a heartbeat if one is due, and looks for a request to stop."""
        this, now = _JOBS.c.name == self.name, time.monotonic()
        status = sa.select(_JOBS.c.status).where(this)
        if batch.job or batch.rows or now - self._beaten >= BEAT_EVERY:
            with self._engine.begin() as connection:
                # The write comes first: SQLite refuses at once to turn a reading transaction into a writing one.
                connection.execute(sa.update(_JOBS).where(this).values(_changes(batch.job)))
                for table, rows in batch.rows.items():
                    connection.execute(self._upserts[table], list(rows.values()))
                found = connection.scalar(status)
            self._beaten = now
        elif now - self._looked >= LOOK_EVERY:
            with self._engine.connect() as connection:
                found = connection.scalar(status)
        else:
            return
        self._looked = now
        self._stop_requested = self._stop_requested or found == "Stopping"


def _changes(job: dict[str, Any]) -> dict[str, Any]:
    changes = {**job, "heartbeat": time.time()}
    if job.get("status") == "InProgress":
        changes["status"] = sa.case((_JOBS.c.status == "Stopping", _JOBS.c.status), else_="InProgress")
    return changes


def _engine(text: str | None) -> sa.Engine:
    """An engine for the URL, or for the default; nothing is opened yet."""
    try:
        url = sa.make_url(text) if text else sa.URL.create("sqlite", database=_default_file())
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise ArgumentError(f"it names {url.get_backend_name()}")
        if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
            raise ArgumentError("a database in memory has one reader only")
        engine = sa.create_engine(url, pool_pre_ping=True)
    except (ArgumentError, ImportError) as error:
        remedy = "pip install 'psycopg[binary]'" if isinstance(error, ImportError) else "correct it"
        # It may hold a password, so the message does not repeat it.
        raise ConfigurationError(
            f"the store's URL cannot be used: {error}; {remedy}, or give sqlite:///path/to/file.db or "
            f"postgresql://user:password@host/database, as the argument or in WARMBAND_STORE"
        ) from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _default_file() -> str:
    """`warmband.db` in `home()`, which is made where it is missing."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"WARMBAND_HOME, {folder}, cannot be made: {error}; set WARMBAND_HOME to a folder that can be written to"
        ) from error
    return str(folder / "warmband.db")


def _set_up_sqlite(connection: Any, _: object) -> None:
    # So that readers never wait for the writer, nor it for them, and two writers wait for each other.
    for setting in (f"busy_timeout={BUSY_SECONDS * 1000:.0f}", "journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {setting}")


def _prepare(engine: sa.Engine) -> None:
    """Makes the tables where there are none. It tries again, since another process may be making them."""
    deadline = time.monotonic() + BUSY_SECONDS
    for attempt in range(10):
        try:
            _make_tables(engine)
        except (IntegrityError, OperationalError, ProgrammingError):
            if attempt == 9 or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _make_tables(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        found = sa.select(_VERSION.c.version)
        version = connection.scalar(found) if sa.inspect(connection).has_table(_VERSION.name) else None
        if version is None:
            _metadata.create_all(connection)
            # Last, so that whoever finds a version finds the tables.
            connection.execute(sa.insert(_VERSION).values(version=SCHEMA_VERSION))
        elif version != SCHEMA_VERSION:
            age = "an older" if version < SCHEMA_VERSION else "a newer"
            raise ConfigurationError(
                f"{age} Warmband wrote the store at {engine.url!r}: its schema is {version}, this one's "
                f"{SCHEMA_VERSION}; open it with that Warmband, or name another store, in WARMBAND_STORE say"
            )


def _upsert(engine: sa.Engine, table: sa.Table) -> Any:
    statement: Any = (postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert)(table)
    others = {column.name: statement.excluded[column.name] for column in table.columns if not column.primary_key}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=others)


@contextmanager
def _explained(url: str, done: str, kind: type[WarmbandError] = WarmbandError) -> Iterator[None]:
    try:
        yield
    except WarmbandError:
        raise
    except (SQLAlchemyError, ValueError) as error:  # ValueError: JSON that is not
        raise kind(
            f"the store at {url} cannot be {done}: {_cause(error)}; check that it is there, whole, and may be written "
            f"to, or name another in WARMBAND_STORE"
        ) from error


def _cause(error: Exception | None) -> str:
    """The driver's own words, without the statement and its values."""
    return str(getattr(error, "orig", None) or error).strip()


def _values(table: sa.Table, row: JobRow | TrialRow | ReportRow | LedgerRow) -> dict[str, Any]:
    return {column.name: _value(column, getattr(row, column.name)) for column in _COLUMNS[table.name]}


def _value(column: sa.Column[Any], value: Any) -> Any:
    """A value as its column holds it; checked here, since a row that the database refuses would block all behind it."""
    kind = column.type
    try:
        if isinstance(kind, sa.JSON):
            return encode(dict(value))
        held: Any = None
        if isinstance(kind, sa.Float):
            held = float(value) if value is not None and math.isfinite(value) else None
        elif isinstance(kind, sa.Integer):
            held = int(operator.index(value)) if value is not None else None
        elif isinstance(value, str):
            held = _text(value)
        else:
            raise ValueError("give text")
        if held is None and not column.nullable:
            raise ValueError("it has to be there, and finite")
        if held not in (words := column.info.get("words", (held,))):
            raise ValueError(f"give one of {', '.join(words)}")
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{column.table.name}.{column.name} is {value!r}: {error}") from error
    return held


def _text(value: str) -> str:
    """Text that every database takes: no NUL and no half of a surrogate pair, which a traceback may hold."""
    if value.isascii() and "\0" not in value:
        return value
    return value.replace("\0", "\ufffd").encode(errors="replace").decode()
