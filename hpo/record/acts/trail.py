"""The trail: acts of persons as rows of the record, written in the transaction of what was done."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from hpo.record.acts.persons import actor, user
from hpo.record.tables import ACTS, ActKind, ActRow, checked

_VALUES = checked(ACTS)


def act(job: str, kind: ActKind, arguments: Mapping[str, Any] | None = None, by: str = "", *, at: float) -> ActRow:
    """An act of whoever acts here.

    Args:
        job: the job's name.
        kind: what was done.
        arguments: with what.
        by: who did it; empty is `actor()`'s, or the user of this process.
        at: unix seconds.
    """
    who = actor()
    return ActRow(
        job=job,
        kind=kind,
        by=by or who.by or user(),
        door=who.door,
        arguments=dict(arguments or {}),
        at=at,
        id=uuid.uuid4().hex,
    )


def acted(
    connection: sa.Connection,
    now: sa.ColumnElement[float],
    job: str,
    kind: ActKind,
    arguments: Mapping[str, Any] | None = None,
    by: str = "",
) -> ActRow:
    """Writes an act in a connection's transaction, at the database's time; the others as for `act`."""
    row = act(job, kind, arguments, by, at=float(connection.scalar(sa.select(now)) or 0.0))
    connection.execute(sa.insert(ACTS).values(_VALUES(row)))
    return row


def gone(connection: sa.Connection, now: sa.ColumnElement[float], deletion: ActRow) -> None:
    """Writes that a job was deleted, in a connection's transaction; from then on all its acts are of a job that was."""
    at = float(connection.scalar(sa.select(now)) or 0.0)
    of_it = sa.and_(ACTS.c.job == deletion.job, ACTS.c.gone_at.is_(None))
    connection.execute(sa.insert(ACTS).values(_VALUES(replace(deletion, at=at))))
    connection.execute(sa.update(ACTS).where(of_it).values(gone_at=at))
