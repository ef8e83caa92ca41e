"""A job's billed worker-seconds by purpose and by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still

from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.text import count

Costs = Mapping[str, Mapping[str, float]]
"""Worker-seconds: by row, and by kind."""

_ENDS = {
    "Completed": "trained to the end",
    "Stopped": "stopped early",
    "Failed": "failed or diverged",
    "Diverged": "failed or diverged",
}


def costs(data: JobData) -> Costs:
    """A job's worker-seconds by what became of the trial that they were for. All rows are all that was billed."""
    statuses = {trial.trial_id: _ENDS.get(trial.status, "under way") for trial in data.trials}
    numbers = {end: list(statuses.values()).count(end) for end in statuses.values()}
    rows = {
        end: f"{count(numbers[end], 'trial')} {end}"
        for end in [*dict.fromkeys(_ENDS.values()), "under way"]
        if end in numbers
    }
    beside = {"untuned": "the un-tuned run", "probe": "the probe", "": "no trial"}
    by_row = {row: dict.fromkeys(look.KINDS, 0.0) for row in [*rows.values(), *beside.values()]}
    for entry in data.ledger:
        end = statuses.get(entry.trial_id)
        row = rows[end] if end else beside.get(entry.trial_id, beside[""])
        by_row[row][entry.kind] += entry.worker_seconds
    return {row: kinds for row, kinds in by_row.items() if any(kinds.values())}


def side_by_side(jobs: Sequence[JobData]) -> Costs:
    """Several jobs' worker-seconds by kind."""
    return {name: job.billed for name, job in zip(look.distinct([job.title for job in jobs]), jobs, strict=True)}


def cost(data: JobData) -> Figure | None:
    """The picture; None while nothing has been billed."""
    rows = costs(data)
    if not rows:
        return None
    total = sum(data.billed.values())
    shares = sorted(data.billed.items(), key=lambda item: -item[1])
    parts = ", ".join(f"{seconds / total:.0%} {kind}" for kind, seconds in shares if seconds / total >= 0.005)
    title = f"{look.amount(total)} worker-seconds{_money(data)}: {parts}"
    note = (
        "Billed is every second that a gang is held, times its workers. A row is what it was held for, a colour what "
        "happened in it; where gangs wait for no trial in particular, or start, that is a row of its own."
    )
    return _figure("cost", title, note, rows, f"{data.title}: what was billed for what")


def costs_compared(jobs: Sequence[JobData]) -> Figure | None:
    """Several jobs' cost, by kind; None where nothing has been billed."""
    rows = side_by_side(jobs)
    totals = {name: sum(kinds.values()) for name, kinds in rows.items()}
    if not any(totals.values()):
        return None
    least, most = min(totals, key=lambda name: totals[name]), max(totals, key=lambda name: totals[name])
    title = f"{look.shortened(least)} took {look.amount(totals[least])} worker-seconds, "
    title += f"{look.shortened(most)} {look.amount(totals[most])}"
    note = "Billed is every second that a gang is held, times its workers; a colour is what happened in it."
    return _figure("cost-compared", title, note, rows, "billed worker-seconds")


def _money(data: JobData) -> str:
    """The same in money, where the job has prices."""
    priced: Mapping[str, Any] | None = data.job.summary.get("cost")
    return f" ({priced['total']:.4g} {priced['currency']})" if priced else ""


def _figure(name: str, title: str, note: str, rows: Costs, subtitle: str) -> Figure:
    return Figure(
        name=name,
        title=title,
        note=note,
        interactive=_interactive(rows),
        still=partial(_still, rows, title, subtitle),
    )


def _interactive(rows: Costs) -> go.Figure:
    names = list(rows)
    totals = [sum(kinds.values()) for kinds in rows.values()]
    traces: list[Any] = [
        go.Bar(
            orientation="h",
            name=kind,
            x=np.array([rows[name][kind] for name in names], dtype=np.float32),
            y=list(range(len(names))),
            marker={"color": colour, "line": {"width": 0}},
            width=0.62,
            hovertext=[look.plain(name) for name in names],
            hovertemplate=f"%{{hovertext}}: %{{x:.4~g}} worker-seconds {kind}<extra></extra>",
        )
        for kind, colour in look.KINDS.items()
        if any(rows[name][kind] for name in names)
    ]
    traces.append(
        go.Scatter(
            x=np.array(totals, dtype=np.float32),
            y=list(range(len(names))),
            mode="text",
            text=[f" {look.amount(total)}" for total in totals],
            textposition="middle right",
            cliponaxis=False,
            showlegend=False,
            hoverinfo="skip",
        )
    )
    return look.interactive(
        *traces,
        height=150 + 44 * len(names),
        barmode="stack",
        xaxis={"title": {"text": "worker-seconds"}, "range": [0, 1.25 * max(totals)]},
        yaxis=look.rows(names),
    )


@look.styled
def _still(rows: Costs, title: str, subtitle: str) -> Still:
    still, axes = look.canvas(title, subtitle, height=1.7 + 0.42 * len(rows))
    names, places = list(rows), range(len(rows))
    left = np.zeros(len(names))
    for kind, colour in look.KINDS.items():
        widths = np.array([rows[name][kind] for name in names])
        if widths.any():
            axes.barh(places, widths, left=left, height=0.62, color=colour, label=kind)
        left += widths
    for place, total in zip(places, left, strict=True):
        axes.text(total, place, f" {look.amount(float(total))}", va="center", fontsize=9)
    look.still_rows(axes, names)
    axes.set_xlim(0, 1.1 * float(left.max()))
    axes.set_xlabel("worker-seconds")
    still.legend(loc="outside lower left", ncols=4, fontsize=9)
    return still
