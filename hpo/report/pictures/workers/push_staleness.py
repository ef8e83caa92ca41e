"""Staleness of gradients on parameter servers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still
from matplotlib.ticker import MaxNLocator, PercentFormatter

from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.text import count

FEWEST = 3
"""Up to which staleness an axis goes at least, so that no bar fills it."""

Histogram = Mapping[int, int]
"""Pushes by their staleness, in updates."""


def staleness(data: JobData) -> dict[str, Histogram]:
    """The staleness of pushes by mode, in the order in which modes first came; empty without servers."""
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for trial in data.trials:
        seen = trial.details.get("parameter_server", {})
        for steps, pushes in seen.get("staleness", {}).items():
            counts[str(seen.get("mode", "unknown"))][int(steps)] += pushes
    return {mode: dict(sorted(pushes.items())) for mode, pushes in counts.items() if sum(pushes.values())}


def mean(histogram: Histogram) -> float:
    """The average staleness of a push."""
    return sum(steps * pushes for steps, pushes in histogram.items()) / sum(histogram.values())


def staleness_histograms(data: JobData) -> Figure | None:
    """The picture; None where no trial had parameter servers."""
    histograms = staleness(data)
    if not histograms:
        return None
    trials = Counter(
        str(seen.get("mode", "unknown")) for trial in data.trials if (seen := trial.details.get("parameter_server"))
    )
    names = {mode: f"{mode} ({count(trials[mode], 'trial')})" for mode in histograms}
    most = max(histograms, key=lambda mode: mean(histograms[mode]))
    title = f"A push of {most} workers was {look.amount(mean(histograms[most]))} updates old on average"
    if not mean(histograms[most]):
        title = "Every push was of the newest parameters"
    note = (
        "Staleness is how many updates were made between a worker's pull and its push; a bar is the part of all pushes "
        "of a mode, in all its trials."
    )
    if "simulated" in {trial.details.get("parameter_server", {}).get("clock") for trial in data.trials}:
        note += " Workers and servers ran in one process, on a simulated clock."
    named = {names[mode]: histogram for mode, histogram in histograms.items()}
    return Figure(
        name="staleness",
        title=title,
        note=note,
        interactive=_interactive(named),
        still=partial(_still, data, named, title),
    )


def _parts(histogram: Histogram) -> tuple[list[int], list[float]]:
    total = sum(histogram.values())
    return [*histogram], [pushes / total for pushes in histogram.values()]


def _interactive(histograms: Mapping[str, Histogram]) -> go.Figure:
    traces = []
    for place, (name, histogram) in enumerate(histograms.items()):
        steps, parts = _parts(histogram)
        traces.append(
            go.Bar(
                name=look.plain(name),
                x=steps,
                y=np.array(parts, dtype=np.float32),
                marker={"color": look.SERIES[place % len(look.SERIES)], "line": {"width": 0}},
                hovertemplate="%{y:.1%} of pushes are %{x} updates old<extra></extra>",
            )
        )
    return look.interactive(
        *traces,
        height=look.HEIGHT - 60,
        showlegend=True,
        xaxis={
            "title": {"text": "staleness, in updates"},
            "tickformat": "d",
            "range": [-0.6, max(FEWEST, *(max(histogram) for histogram in histograms.values())) + 0.6],
        },
        yaxis={"title": {"text": "part of pushes"}, "tickformat": ".0%"},
    )


@look.styled
def _still(data: JobData, histograms: Mapping[str, Histogram], title: str) -> Still:
    still, axes = look.canvas(title, f"{data.title}: staleness of gradients", height=4.2)
    width = 0.8 / len(histograms)
    for place, (name, histogram) in enumerate(histograms.items()):
        steps, parts = _parts(histogram)
        middle = (place - (len(histograms) - 1) / 2) * width
        colour = look.SERIES[place % len(look.SERIES)]
        axes.bar(np.array(steps) + middle, parts, width=width, color=colour, label=name)
    axes.set_xlim(-0.6, max(FEWEST, *(max(histogram) for histogram in histograms.values())) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.set_xlabel("staleness, in updates")
    axes.set_ylabel("part of pushes")
    axes.grid(visible=False, axis="x")
    axes.legend(loc="upper right")
    return still
