"""Jobs as a list, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from hpo.cli.views.words import ago, cost_text, status_text, value_text
from hpo.record import status_and_reason
from hpo.sagemaker import Overview

_WIDE = 100
"""Columns from which on a list of jobs also says whose they are, and where."""


def jobs_table(overviews: Sequence[Overview], width: int) -> RenderableType:
    """A line a job, with what it cost where one has prices, and who owns it and where it runs where that fits."""
    table = _jobs(overviews, wide=True)
    return table if width >= _WIDE and _width(table) <= width else _jobs(overviews, wide=False)


def _jobs(overviews: Sequence[Overview], *, wide: bool) -> Table:
    priced = any(overview.tariff for overview in overviews)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), collapse_padding=True)
    table.add_column("job", overflow="fold")
    for name in ("status", "strategy"):
        table.add_column(name, no_wrap=True)
    for name in ("trials", "best", "worker-s", *(["cost"] if priced else []), "age"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("owner", "runs on") if wide else ():
        table.add_column(name, no_wrap=True)
    for overview in overviews:
        table.add_row(
            overview.job.name,
            status_text(status_and_reason(overview.job)[0]),
            overview.job.spec["strategy"],
            f"{overview.totals.ended}/{overview.planned}",
            value_text(overview.totals.best),
            f"{overview.totals.worker_seconds:,.0f}",
            *([cost_text(overview.tariff, overview.totals.worker_seconds) or "-"] if priced else []),
            ago(overview.job.now - overview.job.created_at),
            *((overview.job.owner or "-", _place(overview.job.driver)) if wide else ()),
        )
    return table


def _width(table: Table) -> int:
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=10_000)
    return Measurement.get(console, console.options, table).maximum


def _place(driver: Mapping[str, Any]) -> str:
    """Where a job's driver runs, or ran."""
    return driver.get("address") or driver.get("host") or "-"
