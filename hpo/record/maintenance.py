"""Maintenance of the record: migration to this schema, checks, and backups."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hpo.record.database import explained, open_engine, shown
from hpo.record.lease import holder_of, is_held
from hpo.record.schema import SCHEMA_VERSION, revisions, upgrade as upgrade_schema, version_of
from hpo.record.store import Store
from hpo.record.tables import JOBS, MARK, OF_JOB, REPORTS, TRIALS, VERSION
from trainers.errors import ConfigurationError, WarmbandError

BACKUP_SECONDS = 3600.0
"""How long a backup may take."""

_TABLES = (JOBS, *OF_JOB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """What an upgrade did: `before` is None where the database was empty, `steps` say what was changed."""

    store: str
    before: int | None
    after: int
    steps: list[str]

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a look at a store found.

    Args:
        store: its URL, without secrets.
        server: the database and its version.
        schema: its version of the tables; None where there are none.
        rows: by table.
        size_bytes: what it takes on the database's disk.
        problems: what is wrong with it, each with its remedy.
        abandoned: jobs that should be running and that nobody drives, each with who did.
    """

    store: str
    server: str
    schema: int | None
    rows: dict[str, int]
    size_bytes: int
    problems: list[str]
    abandoned: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A backup that was read again: its file, its size and its rows by table, which only SQLite's tells."""

    store: str
    file: str
    size_bytes: int
    rows: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def upgrade(url: str | None = None) -> Upgraded:
    """Gives a store this version's schema; an empty database gets the tables.

    Raises:
        ConfigurationError: it cannot be opened, or is not an older Warmband's.
    """
    with _opened(url) as engine:
        before = upgrade_schema(engine)
        steps = [] if before in (None, SCHEMA_VERSION) else revisions()[before:]
        return Upgraded(store=shown(engine.url), before=before, after=SCHEMA_VERSION, steps=steps)


def check(url: str | None = None) -> Health:
    """Looks for what is wrong with a store, and changes nothing.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    with _opened(url, there=True) as engine, explained(shown(engine.url), "read"):
        version = version_of(engine)
        with engine.connect() as connection:
            whole = version == SCHEMA_VERSION
            return Health(
                store=shown(engine.url),
                server=_server(connection),
                schema=version,
                rows=_rows(connection) if whole else {},
                size_bytes=_size(connection),
                problems=[*_damage(connection), *(_orphans(connection) if whole else _wrong_schema(version))],
                abandoned=dict(_abandoned(engine.url)) if whole else {},
            )


def backup(url: str | None, file: Path) -> Copied:
    """Copies a store to a file, while jobs may write it, and reads the copy again before it gets its name.

    A SQLite file's copy is one too. PostgreSQL's is `pg_dump`'s, in its custom format, for `pg_restore`.

    Raises:
        ConfigurationError: the store cannot be opened, or the file be written.
        WarmbandError: the copy failed, or is not whole; nothing is left of it.
    """
    target = file.expanduser().absolute()
    if target.exists():
        raise ConfigurationError(f"{target} is there already; name a new file, or delete that one")
    if not target.parent.is_dir():
        raise ConfigurationError(f"there is no folder {target.parent} for the backup; make it, or name another")
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    with _opened(url, there=True) as engine:
        if (version := version_of(engine)) != SCHEMA_VERSION:
            raise ConfigurationError("; ".join(_wrong_schema(version)))
        try:
            with _copying(shown(engine.url), target):
                rows = _copy_file(engine, part) if engine.dialect.name == "sqlite" else _dump(engine, part)
                _keep(part, target)
        finally:
            part.unlink(missing_ok=True)
        return Copied(store=shown(engine.url), file=str(target), size_bytes=target.stat().st_size, rows=rows)


@contextmanager
def _opened(url: str | None, *, there: bool = False) -> Iterator[sa.Engine]:
    """An engine whose database answers; SQLite makes a file that is not `there`."""
    engine = open_engine(url)
    path = engine.url.database or ""
    if there and engine.dialect.name == "sqlite" and not path.startswith("file:") and not os.path.exists(path):
        raise ConfigurationError(f"there is no store at {shown(engine.url)}; name another, in WARMBAND_STORE say")
    try:
        with explained(shown(engine.url), "opened", ConfigurationError):
            engine.connect().close()
        yield engine
    finally:
        engine.dispose()


# ---- check


def _server(connection: sa.Connection) -> str:
    if connection.dialect.name == "sqlite":
        return f"SQLite {sqlite3.sqlite_version}"
    return f"PostgreSQL {connection.scalar(sa.text('SHOW server_version'))}"


def _rows(connection: sa.Connection) -> dict[str, int]:
    return {table.name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in _TABLES}


def _size(connection: sa.Connection) -> int:
    sqlite = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    postgres = "SELECT pg_database_size(current_database())"
    return int(connection.scalar(sa.text(sqlite if connection.dialect.name == "sqlite" else postgres)) or 0)


def _damage(connection: sa.Connection) -> Iterator[str]:
    """What SQLite finds in its file; a PostgreSQL server looks after its own."""
    if connection.dialect.name == "sqlite":
        found = [str(row[0]) for row in connection.execute(sa.text("PRAGMA integrity_check(20)"))]
        if found != ["ok"]:
            yield f"the file is damaged: {'; '.join(found)}; go back to a backup"


def _wrong_schema(version: int | None) -> Iterator[str]:
    if version is None:
        yield "it has no tables; run `hpo db upgrade` to make them"
    elif version < SCHEMA_VERSION:
        yield f"its schema is {version}, this Warmband's is {SCHEMA_VERSION}; run `hpo db upgrade`"
    else:
        yield f"its schema is {version}, this Warmband's is {SCHEMA_VERSION}; use the Warmband that wrote it"


def _orphans(connection: sa.Connection) -> Iterator[str]:
    """Rows of what is not in the record; what a gang trains to be measured is billed, and is no trial."""
    of_job = {table: JOBS.c.name == table.c.job for table in OF_JOB}
    of_trial = {REPORTS: sa.and_(TRIALS.c.job == REPORTS.c.job, TRIALS.c.trial_id == REPORTS.c.trial_id)}
    for owner, links in ((JOBS, of_job), (TRIALS, of_trial)):
        for table, link in links.items():
            lost = sa.not_(sa.exists().where(link))
            count, first = connection.execute(sa.select(sa.func.count(), sa.func.min(table.c.job)).where(lost)).one()
            if count:
                yield (
                    f"{count} rows of {table.name} are of no {owner.name.removesuffix('s')} that is there, of job "
                    f"{first!r} for example; another program wrote them, or deleted what they are of"
                )


def _abandoned(url: sa.URL) -> Iterator[tuple[str, str]]:
    with Store(url.render_as_string(hide_password=False)) as store:
        for job in store.jobs():
            if job.status in ("InProgress", "Stopping") and not is_held(job):
                yield job.name, f"{holder_of(job.driver)}, last heard of {max(0.0, job.silent):.0f} s ago"


# ---- backup


@contextmanager
def _copying(url: str, target: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error, subprocess.SubprocessError) as error:
        raise WarmbandError(f"the store at {url} cannot be copied to {target}: {error}") from error


def _copy_file(engine: sa.Engine, part: Path) -> dict[str, int]:
    """Copies a SQLite file page by page, by SQLite's own means, and counts the copy's rows."""
    with engine.connect() as connection, closing(sqlite3.connect(part)) as copy:
        connection.connection.driver_connection.backup(copy)  # type: ignore[union-attr]
        copy.execute("PRAGMA journal_mode=DELETE")  # One file, whatever the original is.
        damage = [str(row[0]) for row in copy.execute("PRAGMA integrity_check(20)")]
        if damage != ["ok"]:
            raise WarmbandError(f"the copy of {shown(engine.url)} is damaged: {'; '.join(damage)}; run `hpo db check`")
        return {table.name: copy.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for table in _TABLES}


def _dump(engine: sa.Engine, part: Path) -> dict[str, int]:
    """Has PostgreSQL's own program copy the tables, and its other one read what it wrote."""
    from psycopg.conninfo import make_conninfo

    programs = {name: shutil.which(name) for name in ("pg_dump", "pg_restore")}
    if missing := [name for name, path in programs.items() if path is None]:
        raise WarmbandError(
            f"{' and '.join(missing)} is not installed here; install PostgreSQL's client programs, of the server's "
            f"version or newer (Debian: apt install postgresql-client), or run pg_dump where the server is"
        )
    _, words = engine.dialect.create_connect_args(engine.url)
    password = words.pop("password", None)
    words.pop("context", None)
    where = make_conninfo(**words)
    # In its environment, as everybody may read a command line.
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    tables = [f"--table={table.name}" for table in (*_TABLES, MARK, VERSION)]
    command = [programs["pg_dump"], "--format=custom", "--no-owner", "--no-privileges", "--no-password", *tables]
    _program([*command, f"--file={part}", f"--dbname={where}"], environment)
    _program([programs["pg_restore"], f"--file={os.devnull}", str(part)], environment)  # Reads all of it.
    listed = _program([programs["pg_restore"], "--list", str(part)], environment)
    for table in _TABLES:
        if not re.search(rf" TABLE DATA \S+ {table.name} ", listed):
            raise WarmbandError(f"the copy of {shown(engine.url)} has no table {table.name}; run `hpo db check`")
    return {}


def _program(command: list[Any], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=BACKUP_SECONDS)
    if done.returncode != 0:
        raise WarmbandError(f"{Path(command[0]).name} failed: {' '.join(done.stderr.split())}")
    return done.stdout


def _keep(part: Path, target: Path) -> None:
    """Gives a copy its name once it is on the disk."""
    with part.open("rb") as copy:
        os.fsync(copy.fileno())
    os.replace(part, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
