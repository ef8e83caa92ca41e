"""Connections to the record's database: URL, credentials, settings, clock, and errors explained."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, SQLAlchemyError

from hpo.record.tables import parse
from hpo.text import holds_secret
from trainers.errors import ConfigurationError, WarmbandError
from trainers.home import home

BUSY_SECONDS = 30.0
"""How long a lock of the database is waited for."""

_POSTGRESQL = {
    "application_name": "warmband",
    "connect_timeout": 10,
    # A link that went away without a word is noticed in half a minute, not in the kernel's quarter of an hour.
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""What libpq is told; seconds, and milliseconds for `tcp_user_timeout`."""

_REFUSED = re.compile("authentication failed|does not exist|no pg_hba.conf entry")
"""What a server says whom one asks again in vain; a connection that fails has no code that would tell."""

_JULIAN_EPOCH = 2440587.5
"""1970 in days."""

NOT_THERE = "is not there any more: was it moved or removed, or its disk unmounted?"
"""The end of messages about a record's file that has gone."""


def open_engine(text: str | None) -> sa.Engine:
    """An engine for a URL of SQLite or PostgreSQL; nothing is connected to yet.

    Without one it is `WARMBAND_STORE`, else what the file `WARMBAND_STORE_FILE` holds, else `warmband.db` in `home()`.
    A password may be in the URL, or anywhere that libpq looks: PGPASSWORD, PGPASSFILE, a service's file.

    Raises:
        ConfigurationError: the URL cannot be used, or the file not be read.
    """
    text = text or os.environ.get("WARMBAND_STORE") or _from_file(os.environ.get("WARMBAND_STORE_FILE"))
    try:
        url = sa.make_url(text) if text else sa.URL.create("sqlite", database=_default_file())
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        kind = url.get_backend_name()
        if kind not in ("sqlite", "postgresql"):
            raise ArgumentError(f"it names {kind}")
        if kind == "sqlite" and url.database in (None, "", ":memory:"):
            raise ArgumentError("a database in memory has one reader only")
        if "@" in (url.host or ""):
            raise ArgumentError("there is more than one @ before its host; write those of a password as %40")
        settings = {} if kind == "sqlite" else _settings(url)
        engine = sa.create_engine(url, pool_pre_ping=True, connect_args=settings, json_deserializer=parse)
    except (ArgumentError, ImportError) as error:
        remedy = "pip install 'psycopg[binary]'" if isinstance(error, ImportError) else "correct it"
        # It may hold a password, so the message does not repeat it.
        raise ConfigurationError(
            f"the store's URL cannot be used: {error}; {remedy}, or give sqlite:///path/to/file.db or "
            f"postgresql://user:password@host/database, as the argument or in WARMBAND_STORE"
        ) from error
    sa.event.listen(engine, "handle_error", _connect_anew)
    if kind == "sqlite":
        # All listeners are added here: SQLAlchemy lets none be added or removed while another thread connects.
        connected = threading.Event()
        sa.event.listen(engine, "do_connect", partial(_make_no_second_file, connected, engine))
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "connect", lambda *_: connected.set())
        _check_file(url.database or "")
    return engine


def _settings(url: sa.URL) -> dict[str, Any]:
    """Settings of libpq and the server, where the URL does not say otherwise."""
    # A driver that stands still in the middle of a batch must not hold its job's row for ever.
    waits = {"lock_timeout": BUSY_SECONDS, "idle_in_transaction_session_timeout": BUSY_SECONDS / 2}
    options = [f"-c {name}={seconds * 1000:.0f}" for name, seconds in waits.items()]
    settings = {name: value for name, value in _POSTGRESQL.items() if name not in url.query}
    return {**settings, "options": " ".join([*options, *map(str, url.normalized_query.get("options", ()))])}


def shown(url: sa.URL) -> str:
    """A URL without its secrets."""
    secrets = {key: "***" for key in url.query if holds_secret(f"://?{key}=")}
    return url.update_query_dict(secrets).render_as_string(hide_password=True).replace("%2A%2A%2A", "***")


def clock(engine: sa.Engine) -> sa.ColumnElement[float]:
    """The database's own time in unix seconds: the clocks of machines may differ by more than a lease lasts."""
    if engine.dialect.name == "postgresql":
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)
    return (sa.func.julianday("now", type_=sa.Float) - _JULIAN_EPOCH) * 86400.0


@contextmanager
def explained(url: str, done: str, kind: type[WarmbandError] = WarmbandError) -> Iterator[None]:
    """Makes one of our errors of what SQLAlchemy or the driver raises."""
    try:
        yield
    except WarmbandError:
        raise
    except (SQLAlchemyError, ValueError) as error:  # ValueError: JSON that is not
        raise kind(
            f"the store at {url} cannot be {done}: {cause(error)}; check that it is there, whole, and may be written "
            f"to, or name another in WARMBAND_STORE"
        ) from error


def is_away(error: BaseException) -> bool:
    """Whether an error of `explained` says that the database does not answer now, and may later."""
    failure = error.__cause__
    return isinstance(failure, OperationalError) and not _REFUSED.search(str(failure.orig))


def cause(error: Exception | None) -> str:
    """The driver's own words, without the statement and its values."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def _from_file(path: str | None) -> str | None:
    if not path:
        return None
    try:
        text = Path(path).read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"WARMBAND_STORE_FILE, {path}, cannot be read: {error}; name a file that holds the store's URL"
        ) from error
    if not text:
        raise ConfigurationError(f"WARMBAND_STORE_FILE, {path}, is empty; write the store's URL into it")
    return text


def _check_file(path: str) -> None:
    """Tells what SQLite itself only calls a file that it is unable to open."""
    if path.startswith("file:"):
        return
    where = f"the store at sqlite:///{path} cannot be opened"
    remedy = "name a file in a folder that is there, in WARMBAND_STORE say"
    if os.path.isdir(path):
        raise ConfigurationError(f"{where}: {path} is a folder, not a file; {remedy}")
    if not (folder := Path(path).absolute().parent).is_dir():
        raise ConfigurationError(f"{where}: there is no folder {folder}; {remedy}")


def file_of(engine: sa.Engine) -> str:
    """Returns the path of an engine's file of SQLite; empty for another database, and for a URI of SQLite's own."""
    path = engine.url.database or ""
    return path if engine.dialect.name == "sqlite" and not path.startswith("file:") else ""


def is_missing(engine: sa.Engine) -> bool:
    """Return whether an engine's database is a file of SQLite that is not there."""
    path = file_of(engine)
    return bool(path) and not os.path.exists(path)


def make_private(engine: sa.Engine) -> None:
    """Makes the file of a record in SQLite that is not there, for its owner alone; one that is there keeps its mode."""
    if path := file_of(engine):
        with suppress(OSError):  # It is there, or SQLite says why it cannot be made.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _default_file() -> str:
    """`warmband.db` in `home()`, which is made where it is missing."""
    folder = home()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"WARMBAND_HOME, {folder}, cannot be made: {error}; set WARMBAND_HOME to a folder that can be written to"
        ) from error
    return str(folder / "warmband.db")


def _connect_anew(context: sa.ExceptionContext) -> None:
    """Has no connection used again that was there when a statement failed, whatever it failed of.

    A connection keeps what it began with: a database, or a SQLite file, that could then be read alone stays so for it.
    """
    if not isinstance(context.sqlalchemy_exception, IntegrityError):
        context.is_disconnect = True


def _make_no_second_file(connected: threading.Event, engine: sa.Engine, *_: object) -> None:
    """Refuse to connect anew to a file that is not there any more: SQLite would make an empty one in its place."""
    if connected.is_set() and is_missing(engine):
        raise sqlite3.OperationalError(f"{file_of(engine)} {NOT_THERE}")


def _set_up_sqlite(connection: Any, _: object) -> None:
    # So that readers never wait for the writer, nor it for them, and two writers wait for each other.
    for setting in (f"busy_timeout={BUSY_SECONDS * 1000:.0f}", "journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {setting}")
