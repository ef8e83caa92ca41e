"""Rows of a record: jobs, trials, reports and bills; jobs that are not heard of; and where a SQLite file is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
from hpo.record.tables import JOBS


def job(name: str = "bank", **changes) -> JobRow:
    return JobRow(**{"name": name, "created_at": 1000.0} | changes)


def report(step: int, objective: float | None = 0.5, **changes) -> ReportRow:
    metrics = {"auc": objective}
    return ReportRow(
        **{"job": "bank", "trial_id": "t0", "step": step, "objective": objective, "metrics": metrics, "at": step}
        | changes
    )


def bill(seconds: float, **changes) -> LedgerRow:
    return LedgerRow(
        **{"job": "bank", "gang": "g0", "kind": "training", "worker_seconds": seconds, "at": 1.0} | changes
    )


def silence(store: Store, seconds: float, name: str | None = None) -> None:
    """As if a job, or every one, had not been heard of for so long."""
    where = JOBS.c.name == name if name else sa.true()
    with store._engine.begin() as connection:
        connection.execute(sa.update(JOBS).where(where).values(heartbeat=JOBS.c.heartbeat - seconds))


def held_by(store: Store, driver: Mapping[str, Any], name: str) -> None:
    """As if another process drove a job, which says nothing more."""
    with store._engine.begin() as connection:
        connection.execute(sa.update(JOBS).where(JOBS.c.name == name).values(lease="theirs", driver=dict(driver)))


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def trial_with(**changes) -> TrialRow:
    return TrialRow(**{"job": "bank", "trial_id": "t0", "number": 0} | changes)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"
