"""Pages of trials, filtered and ordered by the database: one of 10,000 trials takes hundredths of a second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa

from hpo.record.job_view import KIND, TRAINING
from hpo.record.reading.row import rows
from hpo.record.tables import JOBS, TRIALS, TrialRow

Key = tuple[float | str, str]
"""By what trials are ordered: a value, and the trial's name for those that have the same."""

Span = tuple[float, float]
"""Unix seconds behind which, and before which, a time has to be."""

EVER: Span = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialQuery:
    """Asks for tuned trials.

    Args:
        most: how many; those behind them are not read.
        job: of one job; None is of all tuning jobs.
        trial_id: one of them; None is all.
        by: what they are ordered by: the name, the status, when they began, or were to, or an objective, which those
            that are found then have.
        descending: the greatest first.
        after: the key of the last one of the page before.
        words: what a status is called, where that is not its name.
        status: in these words; None is any.
        contains: is in the name, in whatever case.
        begun: when they began, or were to.
        modified: when they ended, or else their job was last heard of.
    """

    most: int
    job: str | None = None
    trial_id: str | None = None
    by: Literal["name", "status", "begun", "objective", "best_objective"] = "name"
    descending: bool = False
    after: Key | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    status: str | None = None
    contains: str = ""
    begun: Span = EVER
    modified: Span = EVER


def found_trials(connection: sa.Connection, query: TrialQuery) -> list[tuple[Key, TrialRow]]:
    """The trials that a query asks for, with their keys, in its order."""

    def text(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # PostgreSQL may order texts as a language does, and whoever merges pages orders them as Python does.
        return sa.collate(value, "C") if connection.dialect.name == "postgresql" else value

    begun = sa.func.coalesce(TRIALS.c.started_at, JOBS.c.created_at)
    status: sa.ColumnElement[Any] = TRIALS.c.status
    if query.words:
        status = sa.case(dict(query.words), value=TRIALS.c.status, else_=TRIALS.c.status)
    keys: dict[str, sa.ColumnElement[Any]] = {
        "name": text(TRIALS.c.trial_id),
        "status": text(status),
        "begun": begun,
        "objective": TRIALS.c.objective,
        "best_objective": TRIALS.c.best_objective,
    }
    key, name = keys[query.by], text(TRIALS.c.trial_id)
    asked = sa.select(TRIALS.c.job, TRIALS.c.trial_id, key.label("key")).join(JOBS, JOBS.c.name == TRIALS.c.job)
    asked = asked.where(TRIALS.c.number >= 0, key.is_not(None), *_where(query, status, begun))
    if query.after is not None:
        value, last = query.after
        further = (key < value, name < last) if query.descending else (key > value, name > last)
        asked = asked.where(sa.or_(further[0], sa.and_(key == value, further[1])))
    order = (key.desc(), name.desc()) if query.descending else (key, name)
    listed = list(connection.execute(asked.order_by(*order).limit(query.most)))
    whole = sa.select(TRIALS).where(
        sa.tuple_(TRIALS.c.job, TRIALS.c.trial_id).in_([(job, id) for job, id, _ in listed])
    )
    by_name = {(row.job, row.trial_id): row for row in (rows(connection, TrialRow, whole) if listed else ())}
    return [((value, id), by_name[job, id]) for job, id, value in listed if (job, id) in by_name]


def _where(
    query: TrialQuery, status: sa.ColumnElement[Any], begun: sa.ColumnElement[Any]
) -> list[sa.ColumnElement[bool]]:
    kind = JOBS.c.spec[KIND].as_string()
    tuning = sa.select(JOBS.c.name).where(sa.or_(kind.is_(None), kind != TRAINING))
    where = [TRIALS.c.job.in_(tuning) if query.job is None else TRIALS.c.job == query.job]
    if query.trial_id is not None:
        where.append(TRIALS.c.trial_id == query.trial_id)
    if query.status is not None:
        where.append(status == query.status)
    if query.contains:
        where.append(TRIALS.c.trial_id.icontains(query.contains, autoescape=True))
    heard = JOBS.c.heartbeat + sa.func.coalesce(JOBS.c.driver["ahead"].as_float(), 0.0)
    times = ((begun, query.begun), (sa.func.coalesce(TRIALS.c.ended_at, heard), query.modified))
    for time, (after, before) in times:
        where += [time > after] if math.isfinite(after) else []
        where += [time < before] if math.isfinite(before) else []
    return where
