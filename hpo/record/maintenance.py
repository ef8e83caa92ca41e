"""Maintenance of the record: migration to this schema, and checks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from hpo.record.database import explained, is_missing, open_engine, shown
from hpo.record.lease import holder_of, is_held
from hpo.record.schema import SCHEMA_VERSION, revisions, upgrade as upgrade_schema, version_of
from hpo.record.store import Store
from hpo.record.tables import ACTS, JOBS, OF_JOB, REPORTS, TRIALS
from trainers.errors import ConfigurationError

_TABLES = (JOBS, *OF_JOB, ACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """Result of an upgrade: `before` is None for an empty database, `steps` are the changes."""

    store: str
    before: int | None
    after: int
    steps: list[str]

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Health of a store.

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


@contextmanager
def _opened(url: str | None, *, there: bool = False) -> Iterator[sa.Engine]:
    """An engine whose database answers; SQLite makes a file that is not `there`."""
    engine = open_engine(url)
    if there and is_missing(engine):
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
    """Damage that SQLite finds in its file; a PostgreSQL server looks after its own."""
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
