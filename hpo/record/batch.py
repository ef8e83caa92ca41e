"""Batch: the rows and changes of one job that wait to be written, and the statements that write them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from hpo.record.tables import ACTS, JOBS, OF_JOB, holder
from trainers.errors import ConfigurationError

ROWS_AT_ONCE = 5_000
"""Rows of a statement: a server that hears nothing for long in the middle of a batch takes its driver for gone."""

WRITTEN = (*OF_JOB, ACTS)
"""The tables whose rows a job's writer writes."""

_KEYS = {table.name: operator.itemgetter(*(column.name for column in table.primary_key)) for table in WRITTEN}
_HOLDERS = {column.name: holder(column) for column in JOBS.columns}


@dataclass(slots=True)
class Batch:
    """Rows that wait to be written: changes of the job, and by table the last values of each primary key.

    `beat` asks for a heartbeat even where there is nothing else, which shows that the lease is still held; `delete` for
    the end of all that the record has of the job, in place of anything else.
    """

    beat: bool = False
    delete: bool = False
    job: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)

    def add(self, table: sa.Table, values: dict[str, Any]) -> None:
        """Adds a row, in place of an earlier one with the same primary key."""
        self.rows.setdefault(table.name, {})[_KEYS[table.name](values)] = values

    def extend(self, later: Batch) -> None:
        """Adds all of a later batch, whose values hold."""
        self.beat, self.delete = self.beat or later.beat, self.delete or later.delete
        self.job |= later.job
        for table, rows in later.rows.items():
            self.rows.setdefault(table, {}).update(rows)

    def of(self, table: sa.Table) -> Iterable[Mapping[str, Any]]:
        """The rows of a table."""
        return self.rows.get(table.name, {}).values()

    @property
    def size(self) -> int:
        """How many rows it holds."""
        return sum(map(len, self.rows.values()))

    def job_values(self, now: sa.ColumnElement[float]) -> dict[str, Any]:
        """The job's columns with a heartbeat at `now`; a stop that was requested stays one."""
        changes = {**self.job, "heartbeat": now}
        if self.job.get("status") == "InProgress":
            changes["status"] = sa.case((JOBS.c.status == "Stopping", JOBS.c.status), else_="InProgress")
        return changes

    def write_rows(self, connection: sa.Connection, upserts: Mapping[str, Any]) -> None:
        """Writes the rows in the connection's transaction, with the `upsert` of each table by its name."""
        for table, rows in self.rows.items():
            values = list(rows.values())
            for start in range(0, len(values), ROWS_AT_ONCE):
                connection.execute(upserts[table], values[start : start + ROWS_AT_ONCE])


def job_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns' values of changed fields of a job.

    Raises:
        ConfigurationError: there is no such field, it is not to be changed, or a value is wrong.
    """
    names = [column.name for column in JOBS.columns if column.name not in ("name", "heartbeat", "lease")]
    for unknown in changes.keys() - set(names):
        raise ConfigurationError(f"a job has no field {unknown!r} to change; give one of {', '.join(names)}")
    return {name: _HOLDERS[name](value) for name, value in changes.items()}


def upsert(engine: sa.Engine, table: sa.Table) -> Any:
    """The statement that adds rows to a table, in place of those with the same primary key."""
    statement: Any = (postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert)(table)
    others = {column.name: statement.excluded[column.name] for column in table.columns if not column.primary_key}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=others)
