"""Jobs as a list, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table

from hpo.cli.views.words import ago, cost_text, status_text, value_text
from hpo.record import status_and_reason
from hpo.sagemaker import Overview

_WHOSE = ("owner", "runs on")
"""Heads of the columns that only a wide terminal shows."""

_WIDE = 100
"""Columns from which on a list of jobs also says whose they are, and where."""


def jobs_table(overviews: Sequence[Overview], width: int) -> RenderableType:
    """A line a job, with what it cost where one has prices, and who owns it and where it runs where that fits."""
    priced = any(overview.tariff for overview in overviews)
    rows = [_row(overview, priced=priced) for overview in overviews]
    heads = ["job", "status", "strategy", "trials", "best", "worker-s", *(["cost"] if priced else []), "age", *_WHOSE]
    wide = width >= _WIDE and _width([heads, *rows]) <= width
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), collapse_padding=True)
    table.add_column("job", overflow="fold")
    for name in ("status", "strategy"):
        table.add_column(name, no_wrap=True)
    for name in heads[3 : -len(_WHOSE)]:
        table.add_column(name, justify="right", no_wrap=True)
    for name in _WHOSE if wide else ():
        table.add_column(name, no_wrap=True)
    for name, status, *others in rows:
        table.add_row(name, status_text(status), *(others if wide else others[: -len(_WHOSE)]))
    return table


def _row(overview: Overview, *, priced: bool) -> list[str]:
    return [
        overview.job.name,
        status_and_reason(overview.job)[0],
        overview.job.spec["strategy"],
        f"{overview.totals.ended}/{overview.planned}",
        value_text(overview.totals.best),
        f"{overview.totals.worker_seconds:,.0f}",
        *([cost_text(overview.tariff, overview.totals.worker_seconds) or "-"] if priced else []),
        ago(overview.job.now - overview.job.created_at),
        overview.job.owner or "-",
        _place(overview.job.driver),
    ]


def _width(lines: Sequence[Sequence[str]]) -> int:
    """Return the columns that a table of these lines takes; `rich` measures one of a thousand lines in a second."""
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1)


def _place(driver: Mapping[str, Any]) -> str:
    """Where a job's driver runs, or ran."""
    return driver.get("address") or driver.get("host") or "-"
