"""Learning curves of all trials, with the rung of each stop and the winner."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Still
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from hpo.record import TrialRow, is_training
from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.text import count

MANY = 200
"""From so many curves on, a still holds them as an image, which a file of lines would be too large for."""

MOST_POINTS = 30_000
"""Reports that an interactive picture holds at most: a browser takes a second for so many."""

ENDS = {"went": "circle", "stopped": "circle-open", "lost": "x"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """One trial's objective, report by report; NaN where it was not finite.

    Args:
        trial: whose it is.
        rung: the last rung that it reached; 0 before the first.
        end: "went" to its end, was "stopped" before it, was "lost" (failed or diverged), or "" while it is under way.
    """

    trial: TrialRow
    rung: int
    end: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]


def curves(data: JobData) -> list[Curve]:
    """The curves of the tuned trials that have reported anything, in the order of suggestion."""
    return [_curve(data, trial) for trial in data.trials if data.reports.get(trial.trial_id)]


def learning_curves(data: JobData) -> Figure | None:
    """The picture; None while nothing has been reported."""
    lines = curves(data)
    untuned = data.untuned and data.reports.get(data.untuned.trial_id) and _curve(data, data.untuned)
    if not lines and not untuned:
        return None
    drawn = _Drawn(data=data, lines=lines, untuned=untuned or None)
    return Figure(
        name="learning-curves",
        title=headline(data),
        note=drawn.note,
        interactive=_interactive(drawn),
        still=partial(_still, drawn),
    )


def headline(data: JobData) -> str:
    """How much of what the trials could have used they did use."""
    used, possible = data.used, data.possible
    share = f" ({used / possible:.0%})" if possible else ""
    if is_training(data.job):
        return f"Trained {used:,} of {possible:,} {data.unit}s{share}"
    return f"{count(len(data.trials), 'trial')} used {used:,} of {possible:,} possible {data.unit}s{share}"


def _curve(data: JobData, trial: TrialRow) -> Curve:
    reports = data.reports[trial.trial_id]
    # A fork goes on where its parent stood.
    reports = (*(each for each in data.reports.get(trial.parent, ()) if each.step == trial.parent_resource), *reports)
    reached = bisect_right(data.rungs, max(trial.resource, reports[-1].step))
    return Curve(
        trial=trial,
        rung=data.rungs[reached - 1] if reached else 0,
        end={"Completed": "went", "Stopped": "stopped", "Failed": "lost", "Diverged": "lost"}.get(trial.status, ""),
        steps=np.array([report.step for report in reports]),
        values=np.array([math.nan if report.objective is None else report.objective for report in reports]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Data of both forms of the picture."""

    data: JobData
    lines: Sequence[Curve]
    untuned: Curve | None

    @property
    def best(self) -> Curve | None:
        best = self.data.best
        return next((line for line in self.lines if best is not None and line.trial.trial_id == best.trial_id), None)

    @property
    def groups(self) -> list[tuple[str, str, list[Curve]]]:
        """By rung reached, rising: what it is called, its colour, its curves without the best one."""
        rungs = sorted({line.rung for line in self.lines} | set(self.data.rungs))
        best, groups = self.best, []
        for rung, colour in zip(rungs, look.ramp(len(rungs)), strict=True):
            lines = [line for line in self.lines if line.rung == rung]
            before = "before the first rung" if len(self.data.rungs) > 1 else "stopped earlier"
            reached = f"reached {count(rung, self.data.unit)}" if rung else before
            if lines:
                groups.append((f"{len(lines)} {reached}", colour, [line for line in lines if line is not best]))
        return groups

    @property
    def best_label(self) -> str:
        if self.best is None:
            return ""
        trial, mean = self.best.trial, self.data.means.get(self.best.trial.number)
        whole = "" if mean is None else f", of a mean of {look.score(mean)}"
        return f"best, trial {trial.number}: {look.score(self.data.objective(trial))}{whole}"

    @property
    def untuned_label(self) -> str:
        return f"un-tuned: {look.score(self.data.objective(self.untuned.trial) if self.untuned else None)}"

    @property
    def rungs(self) -> list[int]:
        """The axis's ticks, where it is logarithmic: rungs are then about equally far apart. Else none."""
        return [*self.data.rungs] if len(self.data.rungs) > 1 else []

    @property
    def most(self) -> int:
        """Reports of a curve that the interactive form shows at most."""
        return max(12, MOST_POINTS // max(1, len(self.lines)))

    @property
    def bounds(self) -> tuple[float, float] | None:
        ends = [line.trial for line in (self.best, self.untuned) if line is not None]
        values = (float(value) for line in self.lines for value in line.values)
        return look.bounds(values, [self.data.objective(trial) for trial in ends])

    @property
    def note(self) -> str:
        metric, unit = look.shortened(self.data.metric), self.data.unit
        parts = [
            f"A line is a trial's {metric} after each {unit}; its colour says which rung it reached, an open circle "
            f"that it was stopped there, a full one that it was trained to its end, a cross that it failed or diverged."
        ]
        if any(line.trial.parent for line in self.lines):
            parts.append("A trial that began from another's checkpoint goes on where that one stood.")
        if self.rungs:
            rungs = ", ".join(map(str, self.rungs))
            parts.append(f"Trials are compared at {rungs} {unit}s, on a logarithmic axis.")
        if (limits := self.bounds) is not None:
            hidden = sum(int(np.sum((line.values < limits[0]) | (line.values > limits[1]))) for line in self.lines)
            parts.append(f"{count(hidden, 'report')} far from the others {'are' if hidden != 1 else 'is'} not shown.")
        if any(len(line.steps) > self.most for line in self.lines):
            parts.append(f"Of each long curve but the best, about {self.most} reports are drawn.")
        return " ".join(parts)


# ---- interactive


def _interactive(drawn: _Drawn) -> go.Figure:
    unit, groups = drawn.data.unit, drawn.groups
    traces = []
    for name, colour, lines in groups:
        width = 1.3 if len(drawn.lines) < MANY else 0.6
        shared = {"legendgroup": name, "name": name, "marker_color": colour, "line_color": colour}
        thin = [thinned(line, drawn.rungs, drawn.most) for line in lines]
        traces.append(_line(thin, unit, line_width=width, opacity=0.75, showlegend=True, **shared))
        traces.append(_ends(lines, unit, legendgroup=name, showlegend=False, marker_color=colour))
    if drawn.untuned is not None:
        dashed = {"line_color": look.GREY, "line_dash": "dash", "line_width": 2.2}
        told = _hover(unit, "un-tuned")
        traces.append(_line([drawn.untuned], unit, name=drawn.untuned_label, hovertemplate=told, **dashed))
    if drawn.best is not None:
        shared = {"name": drawn.best_label, "legendgroup": "best"}
        traces.append(_line([drawn.best], unit, line_color=look.BEST, line_width=4, **shared))
        traces.append(_ends([drawn.best], unit, marker_color=look.BEST, marker_size=10, showlegend=False, **shared))
    xaxis: dict[str, Any] = {"title": {"text": f"{unit}s"}, "rangemode": "tozero"}
    if drawn.rungs:
        ticks = {"tickvals": drawn.rungs, "ticktext": [f"{rung:,}" for rung in drawn.rungs]}
        xaxis = {"title": {"text": f"{unit}s (logarithmic)"}, "type": "log", **ticks}
    yaxis = {"title": {"text": look.plain(look.shortened(drawn.data.metric))}, "range": drawn.bounds}
    return look.interactive(*traces, xaxis=xaxis, yaxis=yaxis, height=look.HEIGHT + 60, hovermode="closest")


def thinned(line: Curve, rungs: Sequence[int], most: int) -> Curve:
    """A curve of about so many reports, spread as its axis is: the first, the last and those at rungs among them."""
    number = len(line.steps)
    if number <= most:
        return line
    spread = np.geomspace(1, number, most) if rungs else np.linspace(1, number, most)
    kept = np.isin(line.steps, rungs)
    kept[spread.round().astype(int) - 1] = True
    return replace(line, steps=line.steps[kept], values=line.values[kept])


def _line(lines: Sequence[Curve], unit: str, **look_of: Any) -> go.Scatter:
    """Many curves as one line with gaps: a thousand of them stay one trace."""
    zero, gap = np.zeros(1, dtype=np.int64), np.array([math.nan])
    return go.Scatter(
        x=look.narrowed(np.concatenate([np.append(line.steps, line.steps[-1]) for line in lines] or [zero])),
        y=np.concatenate([np.append(line.values, math.nan) for line in lines] or [gap]).astype(np.float32),
        customdata=look.narrowed(
            np.concatenate([np.full(len(line.steps) + 1, _number(line)) for line in lines] or [zero])
        ),
        mode="lines",
        connectgaps=False,
        **{"hovertemplate": _hover(unit), **look_of},
    )


def _ends(lines: Sequence[Curve], unit: str, **look_of: Any) -> go.Scatter:
    """How each curve ended."""
    ended = [(line, *_last(line)) for line in lines if line.end]
    return go.Scatter(
        x=np.array([step for _, step, _ in ended], dtype=np.float32),
        y=np.array([value for _, _, value in ended], dtype=np.float32),
        customdata=np.array([_number(line) for line, _, _ in ended], dtype=np.int32),
        mode="markers",
        marker_symbol=[ENDS[line.end] for line, _, _ in ended],
        cliponaxis=False,
        hovertemplate=_hover(unit),
        marker_line_width=1.5,
        marker_line_color=look_of["marker_color"],
        **{"marker_size": 7 if len(lines) < MANY else 4, **look_of},
    )


def _number(line: Curve) -> int:
    """The trial's; 0 of the un-tuned run, which has none."""
    return max(0, line.trial.number)


def _hover(unit: str, who: str = "trial %{customdata}") -> str:
    return f"{who}<br>{unit} %{{x}}: %{{y:.5g}}<extra></extra>"


def _last(line: Curve) -> tuple[int, float]:
    """Where a curve ends: its last finite value."""
    finite = np.flatnonzero(np.isfinite(line.values))
    return (int(line.steps[finite[-1]]), float(line.values[finite[-1]])) if finite.size else (0, math.nan)


# ---- still


@look.styled
def _still(drawn: _Drawn) -> Still:
    data = drawn.data
    still, axes = look.canvas(headline(data), f"{data.title}: {look.shortened(data.metric)} of each trial", height=5.4)
    many = len(drawn.lines) >= MANY
    for _, colour, lines in drawn.groups:
        for line in lines:
            _draw(axes, line, colour, lw=0.6 if many else 1.3, ms=3 if many else 5, zorder=2, rasterized=many)
    handles = [Line2D([], [], color=colour, lw=2, label=name) for name, colour, _ in drawn.groups]
    if drawn.untuned is not None:
        (dashed,) = axes.plot(
            drawn.untuned.steps,
            drawn.untuned.values,
            color=look.GREY,
            linestyle=(0, (4, 2)),
            lw=1.9,
            zorder=3,
            label=drawn.untuned_label,
        )
        handles.insert(0, dashed)
    if drawn.best is not None:
        _draw(axes, drawn.best, look.BEST, lw=3.2, ms=8, zorder=4, label=drawn.best_label)
        handles.insert(0, Line2D([], [], color=look.BEST, lw=3.2, label=drawn.best_label))
    handles += _end_handles(drawn)
    axes.set_xlabel(f"{data.unit}s (logarithmic)" if drawn.rungs else f"{data.unit}s")
    axes.set_ylabel(look.shortened(data.metric))
    if drawn.rungs:
        axes.set_xscale("log")
        axes.set_xticks(drawn.rungs, [f"{rung:,}" for rung in drawn.rungs])
        axes.xaxis.set_minor_locator(NullLocator())
    if drawn.bounds is not None:
        axes.set_ylim(drawn.bounds)
    still.legend(handles=handles, loc="outside right upper", fontsize=9)
    return still


def _draw(axes: Axes, line: Curve, colour: str, **look_of: Any) -> None:
    marker = {"went": "o", "stopped": "o", "lost": "X"}.get(line.end)
    finite = np.flatnonzero(np.isfinite(line.values))
    axes.plot(
        line.steps,
        line.values,
        color=colour,
        marker=marker,
        markevery=[int(finite[-1])] if finite.size else [],
        markerfacecolor="white" if line.end == "stopped" else colour,
        solid_joinstyle="round",
        **look_of,
    )


def _end_handles(drawn: _Drawn) -> list[Line2D]:
    """Legend entries of the markers that there are."""
    words = {"stopped": "stopped there", "went": "trained to its end", "lost": "failed or diverged"}
    ends = {line.end for line in drawn.lines}
    return [
        Line2D(
            [],
            [],
            color="#2b3138",
            linestyle="",
            marker="X" if end == "lost" else "o",
            ms=5,
            markerfacecolor="white" if end == "stopped" else "#2b3138",
            label=text,
        )
        for end, text in words.items()
        if end in ends
    ]
