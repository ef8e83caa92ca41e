"""Requests of persons to a running job, as its writer hears them: a stop, trials to add, and trials to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from hpo.record.tables import ACTS, ADDITIONS, JOBS, ActRow, AdditionRow


@dataclass(slots=True, kw_only=True)
class Asked:
    """What was asked of a job so far, in the order in which it was heard of.

    Args:
        job: its name.
        stop: whether it is to stop.
        additions: values for its next trials.
        stops: who stops which trial, by the trial's id.
    """

    job: str
    stop: bool = False
    additions: Sequence[AdditionRow] = ()
    stops: Mapping[str, str] = field(default_factory=dict)

    def hear(self, connection: sa.Connection, mine: sa.ColumnElement[bool]) -> str | None:
        """Takes in what is new; returns the job's status, or None if it is not `mine` any more."""
        added, stopped = _additions(self.job), _stops(self.job)
        found = connection.execute(sa.select(JOBS.c.status, _count(added), _count(stopped)).where(mine)).one_or_none()
        if found is None:
            return None
        status, additions, stops = found
        if additions > len(self.additions):
            heard = {row.id for row in self.additions}
            read = [row for row in _read(connection, AdditionRow, added) if row.id not in heard]
            self.additions = (*self.additions, *read)
        if stops > len(self.stops):
            self.stops = stops_in(_read(connection, ActRow, stopped))
        self.stop = self.stop or status == "Stopping"
        return str(status)


def stops_in(acts: Sequence[ActRow]) -> dict[str, str]:
    """Who stops which trial, by the trial's id."""
    return {str(act.arguments["trial"]): act.by for act in acts if act.kind == "trial_stopped"}


def _additions(job: str) -> sa.Select[Any]:
    return sa.select(ADDITIONS).where(ADDITIONS.c.job == job)


def _stops(job: str) -> sa.Select[Any]:
    return sa.select(ACTS).where(ACTS.c.job == job, ACTS.c.kind == "trial_stopped", ACTS.c.gone_at.is_(None))


def _count(rows: sa.Select[Any]) -> sa.ScalarSelect[Any]:
    return sa.select(sa.func.count()).select_from(rows.subquery()).scalar_subquery()


def _read(connection: sa.Connection, row: type[Any], query: sa.Select[Any]) -> list[Any]:
    columns = query.selected_columns
    found = connection.execute(query.order_by(columns.at, columns.id)).mappings()
    return [row(**each) for each in found]
