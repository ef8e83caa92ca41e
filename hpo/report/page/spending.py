"""The cost of a job by kind, and against its forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpo.report.data import JobData
from hpo.report.page.blocks import Column, Measured, Table
from hpo.report.page.page import Block


def spending(data: JobData) -> list[Block]:
    """Tables of a job's cost; none where nothing was billed or foretold."""
    blocks = (_kinds(data), _forecast(data))
    return [table for table in blocks if table is not None]


def _kinds(data: JobData) -> Table | None:
    total = sum(data.billed.values())
    if not total:
        return None
    cost = data.job.summary.get("cost")
    rows: list[list[object]] = []
    for kind, seconds in [*data.billed.items(), ("in all", total)]:
        paid = [cost["by_kind"].get(kind) if kind != "in all" else cost["total"]] if cost else []
        rows.append([kind, seconds, seconds / total * 100, *paid])
    columns = ["", Column("worker-seconds", 1), Column("%", 1), *([cost["currency"] or "money"] if cost else [])]
    return Table(columns, rows, "What the billed worker-seconds went into.")


def _forecast(data: JobData) -> Table | None:
    """The job's forecast beside the measured figures."""
    forecast: Mapping[str, Any] | None = data.job.summary.get("forecast")
    if not forecast:
        return None
    cost = data.job.summary.get("cost") or {}
    names = {
        "worker_seconds": ("worker-seconds", sum(data.billed.values())),
        "wall_seconds": ("wall time, s", data.job.summary.get("wall_seconds")),
        "cost": (cost.get("currency") or "money", cost.get("total")),
    }
    most, expected = forecast.get("at_most") or {}, forecast.get("expected") or {}
    rows: list[list[object]] = []
    for key, (name, measured) in names.items():
        if most.get(key) is None and expected.get(key) is None:
            continue
        came_to = measured if data.job.ended_at is not None else None
        off = (came_to / expected[key] - 1) * 100 if came_to is not None and expected.get(key) else None
        rows.append([name, most.get(key), expected.get(key), came_to, Measured(off, signed=True)])
    source = forecast.get("source", "")
    told = f"The forecast, from {'a probe' if source == 'probe' else source}, and what the job came to."
    return Table(["", "at most", "expected", "came to", Column("% off", 0)], rows, told)
