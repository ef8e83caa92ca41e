"""Share of communication in the time of trials' steps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still
from matplotlib.ticker import MaxNLocator, PercentFormatter

from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.text import communication_share, count

Shares = Mapping[int, Mapping[int, float]]
"""The share of communication by number of workers, and by number of trial."""


def shares(data: JobData) -> Shares:
    """The shares of all trials whose steps were measured; empty where none was."""
    by_workers: dict[int, dict[int, float]] = {}
    for trial in data.trials:
        measured = trial.details.get("communication") or {}
        if (share := communication_share(measured)) is not None:
            by_workers.setdefault(len(measured["step_seconds"]), {})[trial.number] = share
    return dict(sorted(by_workers.items()))


def communication(data: JobData) -> Figure | None:
    """The picture; None where no trial had several workers."""
    found = shares(data)
    if not found:
        return None
    means = {workers: float(np.mean([*of.values()])) for workers, of in found.items()}
    most = max(means, key=lambda workers: means[workers])
    title = f"Steps of {count(most, 'worker')} waited for others {means[most]:.0%} of their time"
    note = (
        "A bar is the share of a trial's steps, of all its workers, in which they stood still for gradients or "
        "parameters of others; what went on behind a backward pass is none of it. Steps are loading, forward and "
        "backward pass and update, without evaluation."
    )
    return Figure(
        name="communication",
        title=title,
        note=note,
        interactive=_interactive(found),
        still=partial(_still, data, found, title),
    )


def _interactive(found: Shares) -> go.Figure:
    traces: list[Any] = [
        go.Bar(
            name=count(workers, "worker"),
            x=[*of],
            y=np.array([*of.values()], dtype=np.float32),
            marker={"color": look.SERIES[place % len(look.SERIES)], "line": {"width": 0}},
            hovertemplate="trial %{x}: %{y:.1%} of its steps' time<extra></extra>",
        )
        for place, (workers, of) in enumerate(found.items())
    ]
    return look.interactive(
        *traces,
        height=look.HEIGHT - 60,
        showlegend=True,
        barmode="overlay",
        xaxis={"title": {"text": "trial"}, "tickformat": "d"},
        yaxis={"title": {"text": "share of steps' time"}, "tickformat": ".0%", "rangemode": "tozero"},
    )


@look.styled
def _still(data: JobData, found: Shares, title: str) -> Still:
    still, axes = look.canvas(title, f"{data.title}: share of communication", height=4.2)
    for place, (workers, of) in enumerate(found.items()):
        colour = look.SERIES[place % len(look.SERIES)]
        axes.bar([*of], [*of.values()], width=0.8, color=colour, label=count(workers, "worker"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("trial")
    axes.set_ylabel("share of steps' time")
    axes.grid(visible=False, axis="x")
    axes.legend(loc="upper right")
    return still
