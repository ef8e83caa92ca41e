"""Report on channels of data: columns, labels, what workers load, and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hpo.text import count, in_bytes, roles_text
from trainers.channels import label_summary
from trainers.data_check import ChannelReport, ColumnSummary, DataReport, LabelSummary, Load

MOST_COLUMNS = 40
"""Lines of a channel's columns; --json has all of them."""
_MOST_CLASSES = 12


def report_parts(report: DataReport) -> Iterator[RenderableType]:
    """The report in sections: each channel, the columns of the first, and at the end what was found."""
    for place, channel in enumerate(report.channels):
        yield from _channel(channel)
        if place == 0:
            yield from _columns(channel)
        yield ""
    if not report.findings:
        yield "Nothing was found that speaks against training on this."
        return
    yield Text(f"To look at ({len(report.findings)})", style="bold yellow")
    for finding in report.findings:
        yield f"  {finding}"


def report_json(report: DataReport) -> dict[str, Any]:
    """The report for programs."""
    from dataclasses import asdict

    made = asdict(report)
    for channel in made["channels"]:
        channel["labels"]["classes"] = {f"{label:g}": rows for label, rows in channel["labels"]["classes"].items()}
    return made


def _channel(channel: ChannelReport) -> Iterator[RenderableType]:
    files = channel.about.get("files") or []
    where = f" in {count(len(files), 'file')}" if files else ""
    yield Text(
        f"{channel.name}: {count(channel.rows, 'row')} of {count(len(channel.columns), 'feature')}{where}", style="bold"
    )
    yield f"  {roles_text({**channel.about, 'labels': _seen(channel.labels)})}"
    yield f"  label: {_label(channel.labels, channel.about.get('classes') or ())}"
    if channel.loads:
        yield f"  a worker loads: {'; '.join(map(_load, channel.loads))}"


def _columns(channel: ChannelReport) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("  column", overflow="fold")
    table.add_column("holds")
    for name in ("missing", "least", "greatest"):
        table.add_column(name, justify="right")
    for column in channel.columns[:MOST_COLUMNS]:
        table.add_row(f"  {column.name}", *_cells(column, channel.rows))
    yield table
    if (more := len(channel.columns) - MOST_COLUMNS) > 0:
        yield f"  and {count(more, 'more column')}: --json has all"


def _load(load: Load) -> str:
    who = "alone" if load.workers == 1 else f"of {load.workers}"
    return f"{who}, {in_bytes(load.nbytes)} in about {_seconds(load.seconds)}"


def _cells(column: ColumnSummary, rows: int) -> tuple[str, str, str, str]:
    missing = f"{column.missing / rows:.1%}" if column.missing else "-"
    if column.kind == "categories":
        return f"{column.categories:,} categories", missing, "", ""
    if column.least is None or column.greatest is None:
        return column.kind, missing, "", ""
    return column.kind, missing, f"{column.least:g}", f"{column.greatest:g}"


def _seen(labels: LabelSummary) -> dict[str, Any]:
    """Labels of all rows for `roles_text`."""
    values = list(labels.classes) or [labels.least, labels.greatest]
    return label_summary(np.array(values, np.float32))


def _label(labels: LabelSummary, classes: Sequence[str]) -> str:
    if not labels.classes:
        return f"numbers from {labels.least:g} to {labels.greatest:g}, mean {labels.mean:g} +- {labels.deviation:g}"
    shares = list(labels.shares().items())
    named = {label: classes[int(label)] if classes else f"{label:g}" for label, _ in shares}
    shown = ", ".join(f"{named[label]} ({share:.1%})" for label, share in shares[:_MOST_CLASSES])
    more = f" and {len(shares) - _MOST_CLASSES} more" if len(shares) > _MOST_CLASSES else ""
    return f"{count(len(shares), 'value')}, {shown}{more}"


def _seconds(seconds: float) -> str:
    if seconds < 0.1:
        return "0.1 s"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
