"""Rows of a query as the record's dataclasses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import sqlalchemy as sa

from hpo.record.tables import ActRow, AdditionRow, JobRow, LedgerRow, LineRow, ReportRow, TrialRow

_Row = TypeVar("_Row", JobRow, TrialRow, ReportRow, LedgerRow, LineRow, AdditionRow, ActRow)


def rows(connection: sa.Connection, row: type[_Row], query: sa.Select[*tuple[object, ...]]) -> Iterator[_Row]:
    """Return the rows that a query finds, one after another.

    Args:
        connection: to the database.
        row: the dataclass of the table.
        query: selects its fields, each under its name.
    """
    names = [column.name for column in query.selected_columns]
    for found in connection.execute(query):
        yield row(**dict(zip(names, found, strict=True)))
