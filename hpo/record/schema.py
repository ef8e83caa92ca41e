"""The version of a database's schema, and its migration to this one.

An empty database gets the tables as they are now; an older one goes through Alembic's revisions in
`hpo.record.migrations`. Either is one transaction, which one process at a time goes through and the others wait for.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from hpo.record import database
from hpo.record.database import shown
from hpo.record.tables import MARK, METADATA, VERSION
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from alembic.config import Config

SCHEMA_VERSION = 12
"""Raised with every change of the tables: the number of the newest revision in `hpo.record.migrations.versions`."""

_REVISIONS = Path(__file__).parent / "migrations"

_LAST_UNMARKED = 4
"""The last version that `schema_version` tells; a later one also has `warmband_version`, which is Alembic's."""

_ALEMBIC = threading.Lock()
"""Its revisions find their connection in a variable of its module."""

_T = TypeVar("_T")

_LOCK = 0x77_61_72_6D
"""The number of PostgreSQL's lock for whoever changes the tables."""


def prepare(engine: sa.Engine) -> None:
    """Sees to it that the database has the tables: makes them where there are none, and brings up an older SQLite file.

    Raises:
        ConfigurationError: another version of Warmband, or another program, made what is there.
    """
    version = version_of(engine)
    if version == SCHEMA_VERSION:
        return
    if version is not None and version < SCHEMA_VERSION and engine.dialect.name == "postgresql":
        raise ConfigurationError(
            f"{_other(engine, version)}; run `hpo db upgrade` once no job runs that an older Warmband drives, or name "
            f"another store, in WARMBAND_STORE say"
        )
    upgrade(engine)


def upgrade(engine: sa.Engine) -> int | None:
    """Gives the database this schema.

    Returns:
        The version that it had; None if it was empty.

    Raises:
        ConfigurationError: another version of Warmband, or another program, made what is there.
    """
    return _patiently(lambda: _upgrade(engine))


def version_of(engine: sa.Engine) -> int | None:
    """The schema's number; None where the database is empty.

    Raises:
        ConfigurationError: another program made what is there.
    """

    def look() -> int | None:
        with engine.connect() as connection:
            return _version(connection)

    return _patiently(look)


def _upgrade(engine: sa.Engine) -> int | None:
    with _changing(engine) as connection:
        version = _version(connection)
        if version is None:
            _make(connection)
        elif 1 <= version < SCHEMA_VERSION:
            _migrate(connection, version)
        elif version != SCHEMA_VERSION:
            raise ConfigurationError(
                f"{_other(engine, version)}; open it with that Warmband, or name another store, in WARMBAND_STORE say"
            )
        return version


def _other(engine: sa.Engine, version: int) -> str:
    age = "an older" if version < SCHEMA_VERSION else "a newer"
    where = shown(engine.url)
    return f"{age} Warmband wrote the store at {where}: its schema is {version}, this one's is {SCHEMA_VERSION}"


def _version(connection: sa.Connection) -> int | None:
    names = set(sa.inspect(connection).get_table_names())
    if MARK.name in names:
        return int(connection.scalar(sa.select(MARK.c.version_num)) or 0)
    if VERSION.name in names:
        return int(connection.scalar(sa.select(VERSION.c.version)) or 0)
    if others := sorted(names & METADATA.tables.keys()):
        raise ConfigurationError(
            f"the store at {shown(connection.engine.url)} has the table {others[0]} of another program; name a "
            f"database, or a schema of one, that is Warmband's alone, in WARMBAND_STORE say"
        )
    return None


@contextmanager
def _changing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that no other process or thread that changes the tables is in at the same time."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


def _patiently(action: Callable[[], _T]) -> _T:
    """The action's result. A file that is just becoming WAL refuses others at once, whatever their timeout."""
    deadline = time.monotonic() + database.BUSY_SECONDS
    while True:
        try:
            return action()
        except OperationalError as error:
            code = getattr(error.orig, "sqlite_errorcode", 0)
            if code & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _make(connection: sa.Connection) -> None:
    METADATA.create_all(connection)
    connection.execute(sa.insert(VERSION).values(version=_LAST_UNMARKED + 1))
    connection.execute(sa.insert(MARK).values(version_num=f"{SCHEMA_VERSION:04d}"))


def _migrate(connection: sa.Connection, version: int) -> None:
    """Goes through the revisions after a version's."""
    from alembic import command  # Takes half a second, and few need it.

    with _ALEMBIC:
        if version <= _LAST_UNMARKED:
            command.stamp(alembic(connection), f"{version:04d}")
        command.upgrade(alembic(connection), "head")


def alembic(connection: sa.Connection) -> Config:
    """Alembic's settings, for a connection that is in a transaction."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_REVISIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def revisions() -> list[str]:
    """The changes of each version, the first one first."""
    from alembic.script import ScriptDirectory

    return [str(revision.doc) for revision in ScriptDirectory(str(_REVISIONS)).walk_revisions()][::-1]
