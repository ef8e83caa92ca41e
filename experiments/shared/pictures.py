"""Pictures of the published experiments in both forms: scores with errors, learning curves, bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from hpo.report import Figure, look, with_error

COLOURS = (look.BLUE, look.GREEN, look.ROSE, look.OCHRE, look.VIOLET, look.GREY, look.BEST)
_ROW = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A score in a picture.

    Args:
        label: what it is of.
        value: the score.
        error: its standard error; None where that is not known.
        colour: of `hpo.report.pictures.look`.
    """

    label: str
    value: float
    error: float | None = None
    colour: str = look.BLUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Learning curves of one way to train.

    Args:
        label: what it is.
        curves: a curve a seed; shorter ones end early.
        colour: of `hpo.report.pictures.look`.
    """

    label: str
    curves: Sequence[Sequence[float]]
    colour: str

    @property
    def mean(self) -> NDArray[np.float64]:
        """Over the seeds that came so far, epoch by epoch."""
        return np.array([np.mean(at) for at in self._columns])

    @property
    def band(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and the most of any seed."""
        return np.array([min(at) for at in self._columns]), np.array([max(at) for at in self._columns])

    @property
    def _columns(self) -> list[list[float]]:
        longest = max(map(len, self.curves), default=0)
        return [[curve[at] for curve in self.curves if len(curve) > at] for at in range(longest)]


def scores(name: str, title: str, note: str, dots: Sequence[Dot], axis: str, marks: Mapping[str, float]) -> Figure:
    """Scores, one under the other, with two standard errors to either side.

    Args:
        name: a slug.
        title: what it shows.
        note: how to read it.
        dots: from top to bottom.
        axis: what the scores are.
        marks: scores that the others are compared with, as lines through the picture.
    """
    dots = [dot for dot in dots if math.isfinite(dot.value)]
    labels = [look.plain(dot.label) for dot in dots]
    trace = go.Scatter(
        x=[dot.value for dot in dots],
        y=labels,
        error_x={
            "type": "data",
            "array": [2 * (dot.error or 0.0) for dot in dots],
            "color": look.GREY,
            "thickness": 1.6,
            "width": 4,
        },
        mode="markers",
        marker={"color": [dot.colour for dot in dots], "size": 11},
        text=[with_error(dot.value, dot.error, 4) for dot in dots],
        hovertemplate="%{y}: %{text}<extra></extra>",
        showlegend=False,
        cliponaxis=False,
    )
    figure = look.interactive(
        trace,
        xaxis={"title": {"text": look.plain(axis)}, "range": _around(dots, marks.values())},
        yaxis={"autorange": "reversed", "type": "category", "automargin": True},
        height=150 + _ROW * len(dots),
    )
    middle = sum(_around(dots, marks.values()) or (0.0, 0.0)) / 2
    for text, value in marks.items():
        side = "right" if value > middle else "left"  # Else it would be cut off.
        label = {"text": look.plain(text), "yshift": 14, "xanchor": side}
        figure.add_vline(x=value, line={"dash": "dot", "color": look.GREY}, annotation=label)
    figure.update_layout(margin={"t": 40})
    return Figure(
        name=name, title=title, note=note, interactive=figure, still=partial(_scores, title, dots, axis, marks)
    )


def _around(dots: Sequence[Dot], marks: Iterable[float]) -> tuple[float, float] | None:
    """Between which values everything lies, with some room; None where there is nothing."""
    ends = [dot.value + side * (dot.error or 0.0) for dot in dots for side in (-2, 2)]
    ends += [value for value in marks if math.isfinite(value)]
    if not ends:
        return None
    room = 0.08 * (max(ends) - min(ends)) or 0.01
    return min(ends) - room, max(ends) + room


@look.styled
def _scores(title: str, dots: Sequence[Dot], axis: str, marks: Mapping[str, float]) -> Still:
    still, axes = look.canvas(title, "", height=1.5 + 0.36 * len(dots))
    for place, dot in enumerate(dots):
        axes.errorbar(dot.value, place, xerr=2 * (dot.error or 0.0), fmt="o", ms=7, color=dot.colour, capsize=3)
        text = with_error(dot.value, dot.error, 4)
        axes.annotate(text, (dot.value, place), (0, 7), textcoords="offset points", ha="center", fontsize=8)
    for text, value in marks.items():
        axes.axvline(value, color=look.GREY, linestyle=":", lw=1.4, zorder=0)
        axes.annotate(
            text, (value, 1), (0, 2), xycoords=("data", "axes fraction"), textcoords="offset points", ha="center",
            fontsize=8.5, color=look.GREY,
        )  # fmt: skip
    axes.set_yticks(range(len(dots)), [dot.label for dot in dots])
    axes.set_ylim(len(dots) - 0.4, -0.7)
    axes.margins(x=0.12)
    axes.set_xlabel(axis)
    return still


def learning(
    name: str, title: str, note: str, lines: Sequence[Line], unit: str, metric: str, *, logarithmic: bool = False
) -> Figure:
    """Learning curves: the mean over seeds, in a band from the least to the most of them.

    Args:
        name: a slug.
        title: what it shows.
        note: how to read it.
        lines: what is compared.
        unit: of training, such as "epoch".
        metric: what is learnt.
        logarithmic: each step up is so many times as much; what is not above 0 is left out.
    """
    lines = [line for line in lines if len(line.mean)]
    traces: list[Any] = []
    for line in lines:
        steps = np.arange(1, len(line.mean) + 1)
        if len(line.curves) > 1:
            low, high = line.band
            traces.append(
                go.Scatter(
                    x=np.concatenate([steps, steps[::-1]]),
                    y=np.concatenate([high, low[::-1]]).astype(np.float32),
                    fill="toself",
                    fillcolor=line.colour,
                    opacity=0.18,
                    line={"width": 0},
                    hoverinfo="skip",
                    showlegend=False,
                    legendgroup=line.label,
                )
            )
        traces.append(
            go.Scatter(
                x=steps,
                y=line.mean.astype(np.float32),
                name=look.plain(line.label),
                legendgroup=line.label,
                line={"color": line.colour, "width": 2.4},
                hovertemplate=f"{unit} %{{x}}: %{{y:.4f}}<extra>{look.plain(line.label)}</extra>",
            )
        )
    longest = max((len(line.mean) for line in lines), default=0)
    xaxis = {"title": {"text": f"{unit}s"}, "dtick": 1 if longest <= 12 else None}
    yaxis: dict[str, Any] = {"title": {"text": look.plain(metric)}}
    if logarithmic:
        yaxis |= {"type": "log", "dtick": 1}
    layout = {"xaxis": xaxis, "yaxis": yaxis}
    shown = look.interactive(*traces, height=look.HEIGHT + 26 * (len(lines) // 2), **layout)
    still = partial(_learning, title, lines, unit, metric, logarithmic)
    return Figure(name=name, title=title, note=note, interactive=shown, still=still)


@look.styled
def _learning(title: str, lines: Sequence[Line], unit: str, metric: str, logarithmic: bool) -> Still:
    still, axes = look.canvas(title, "")
    if logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    for line in lines:
        steps = np.arange(1, len(line.mean) + 1)
        axes.plot(steps, line.mean, color=line.colour, lw=2, label=line.label)
        if len(line.curves) > 1:
            axes.fill_between(steps, *line.band, color=line.colour, alpha=0.18, lw=0)
    axes.set_xlabel(f"{unit}s")
    axes.set_ylabel(metric)
    still.legend(loc="outside right upper", fontsize=9)
    return still


def bars(name: str, title: str, note: str, labels: Sequence[str], panels: Mapping[str, Sequence[float]]) -> Figure:
    """Bars of several quantities over the same labels.

    Args:
        name: a slug.
        title: what it shows.
        note: how to read it.
        labels: from top to bottom.
        panels: each quantity's values, by its name and unit.
    """
    # One under the other: side by side they do not fit a phone.
    figure = make_subplots(rows=len(panels), cols=1, vertical_spacing=0.3 / len(panels))
    base = look.interactive(height=60 + len(panels) * (70 + 28 * len(labels))).layout
    figure.update_layout(template=base.template, height=base.height, showlegend=False)
    for number, (axis, values) in enumerate(panels.items(), 1):
        bar = go.Bar(
            x=list(values),
            y=[look.plain(label) for label in labels],
            orientation="h",
            marker={"color": COLOURS[(number - 1) % len(COLOURS)]},
            text=[_amount(value) for value in values],
            textangle=0,
            hovertemplate="%{y}: %{x:,.4~r}<extra></extra>",
        )
        figure.add_trace(bar, row=number, col=1)
        figure.update_xaxes(title_text=look.plain(axis), row=number, col=1)
    figure.update_yaxes(autorange="reversed")
    return Figure(name=name, title=title, note=note, interactive=figure, still=partial(_bars, title, labels, panels))


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


@look.styled
def _bars(title: str, labels: Sequence[str], panels: Mapping[str, Sequence[float]]) -> Still:
    still = Still(figsize=(look.WIDTH, 1.4 + 0.36 * len(labels)), layout="constrained")
    still.suptitle(title, x=0.012, ha="left", fontsize=12.5, weight="bold", wrap=True)
    for place, (axes, (axis, values)) in enumerate(
        zip(np.atleast_1d(still.subplots(1, len(panels), sharey=True)), panels.items(), strict=True)
    ):
        drawn = axes.barh(range(len(labels)), values, color=COLOURS[place % len(COLOURS)], height=0.66)
        axes.bar_label(drawn, [_amount(value) for value in values], padding=3, fontsize=8)
        axes.set_yticks(range(len(labels)), labels)
        axes.margins(x=0.18)
        axes.set_xlabel(axis)
        axes.grid(axis="x")
        axes.spines[["top", "right"]].set_visible(False)
    axes.invert_yaxis()
    return still


def histogram(name: str, title: str, note: str, counts: Mapping[int, int], axis: str, colour: str) -> Figure:
    """How often each whole number came, as a share of all.

    Args:
        name: a slug.
        title: what it shows.
        note: how to read it.
        counts: how often each number came.
        axis: what the numbers are.
        colour: of the bars.
    """
    numbers, total = sorted(counts), sum(counts.values())
    shares = [counts[number] / total for number in numbers]
    bar = go.Bar(x=numbers, y=shares, marker={"color": colour}, hovertemplate="%{x}: %{y:.1%}<extra></extra>")
    shown = look.interactive(
        bar,
        xaxis={"title": {"text": look.plain(axis)}, "dtick": 1},
        yaxis={"title": {"text": "share"}, "tickformat": ".0%"},
        height=look.HEIGHT - 100,
    )
    drawn = partial(_histogram, title, numbers, shares, axis, colour)
    return Figure(name=name, title=title, note=note, interactive=shown, still=drawn)


@look.styled
def _histogram(title: str, numbers: Sequence[int], shares: Sequence[float], axis: str, colour: str) -> Still:
    still, axes = look.canvas(title, "", height=3.6)
    axes.bar(numbers, shares, 0.8, color=colour)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xticks(numbers)
    axes.set_xlabel(axis)
    axes.set_ylabel("share")
    return still
