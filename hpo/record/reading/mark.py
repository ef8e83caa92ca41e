"""Mark of a job: the few columns that differ after every write to its record."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from hpo.record.tables import ACTS, ADDITIONS, JOBS, LOST_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a job's row says of when it was last written.

    Every batch of a job's writer sets `heartbeat`, and other processes change `status`, `lease`, `ended_at` or give
    values for trials, so that two equal marks mean the same record.

    Args:
        created_at: tells a job from a deleted one of its name.
        status, lease, ended_at, heartbeat: columns of its row.
        lost: whether its writer has not been heard of for a minute, by the database's clock.
        additions: how often persons gave values for its trials.
        acts: how often persons did something to it.
    """

    created_at: float
    status: str
    lease: str
    ended_at: float | None
    heartbeat: float
    lost: bool
    additions: int
    acts: int


def marks(
    connection: sa.Connection, clock: sa.ColumnElement[float], names: Collection[str] | None = None
) -> dict[str, Mark]:
    """The marks of jobs, by name.

    Args:
        connection: to the database.
        clock: the database's own time.
        names: of the jobs; None is all. A job that is not there has no mark.
    """
    given = (
        sa.select(sa.func.count())
        .where(ADDITIONS.c.job == JOBS.c.name)
        .correlate(JOBS)
        .scalar_subquery()
        .label("given")
    )
    acts = sa.select(sa.func.count()).where(ACTS.c.job == JOBS.c.name).correlate(JOBS).scalar_subquery().label("acts")
    silent = (clock - JOBS.c.heartbeat).label("silent")
    columns = (JOBS.c.name, JOBS.c.created_at, JOBS.c.status, JOBS.c.lease, JOBS.c.ended_at, JOBS.c.heartbeat)
    query = sa.select(*columns, silent, given, acts)
    if names is not None:
        query = query.where(JOBS.c.name.in_(names))
    return {
        name: Mark(
            created_at=created_at,
            status=status,
            lease=lease,
            ended_at=ended_at,
            heartbeat=heartbeat,
            lost=silence > LOST_AFTER,
            additions=additions,
            acts=done,
        )
        for name, created_at, status, lease, ended_at, heartbeat, silence, additions, done in connection.execute(query)
    }
