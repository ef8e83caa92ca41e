"""Learning curves of a job as plain numbers, without the rows that hold them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from hpo.record.tables import REPORTS


def curves(connection: sa.Connection, name: str, metric: str | None) -> Iterator[tuple[str, int, float | None]]:
    """Trial, step and value of each report of a job, by trial and step; None for a value that is not finite.

    Args:
        connection: to the database.
        name: the job's.
        metric: None is the objective; a report without this metric is left out.
    """
    value: sa.ColumnElement[Any] = REPORTS.c.objective
    query = sa.select(REPORTS.c.trial_id, REPORTS.c.step, value)
    if metric is not None:
        value = REPORTS.c.metrics[metric].as_float()
        query = sa.select(REPORTS.c.trial_id, REPORTS.c.step, value).where(value.is_not(None))
    query = query.where(REPORTS.c.job == name).order_by(REPORTS.c.trial_id, REPORTS.c.step)
    for trial, step, found in connection.execute(query.execution_options(yield_per=5000)):
        finite = isinstance(found, int | float) and math.isfinite(found)
        yield trial, step, float(found) if finite else None
