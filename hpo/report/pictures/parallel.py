"""Parallel coordinates: every trial as a line across its hyperparameters to its score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still
from matplotlib.lines import Line2D

from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange
from hpo.record import TrialRow
from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.report.pictures.scales import fixed, has_all, position
from hpo.text import count, short

MOST_LINES = 60
"""Lines of a group that are drawn at most."""

MOST_AXES = 12
"""Hyperparameters that are shown at most."""

ABOVE_ABSENT = 0.15
"""The least place of a value on an axis at whose bottom are the trials that have none."""

GROUPS = ("the worst quarter", "the third quarter", "the second quarter", "the best quarter")
LOST = "failed or diverged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One upright axis, from 0 at the bottom to 1 at the top.

    Args:
        name: a hyperparameter's, or the objective's.
        ticks: values that are written beside it, with their places.
        scatter: how far lines may lie beside their place, where many would share it.
    """

    name: str
    ticks: tuple[tuple[float, str], ...]
    scatter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One trial.

    Args:
        trial: which.
        group: one of `GROUPS` by its score, or `LOST`.
        places: on each axis; NaN on the last where it has no score.
    """

    trial: TrialRow
    group: str
    places: tuple[float, ...]


def coordinates(data: JobData) -> tuple[list[Axis], list[Line]]:
    """The axes, the objective's last, and the lines of all trials that have a score or failed; none without a score."""
    ranges = {name: bounds for name, bounds in data.ranges.items() if not fixed(bounds)}
    ranges = dict([*ranges.items()][:MOST_AXES])
    over = [trial for trial in data.trials if has_all(ranges, trial.hyperparameters)]
    scores = {
        trial.trial_id: score
        for trial in over
        if trial.status not in ("Failed", "Diverged") and (score := data.objective(trial)) is not None
    }
    if not scores or not ranges:
        return [], []
    top = max(scores.values()) if data.maximize else min(scores.values())
    low, high = look.bounds(scores.values(), [top]) or (min(scores.values()), max(scores.values()))
    axes = [_axis(name, bounds) for name, bounds in ranges.items()]
    axes.append(Axis(name=data.metric, ticks=((0.0, look.score(low)), (1.0, look.score(high)))))
    sign = 1.0 if data.maximize else -1.0
    ordered = sorted(scores, key=lambda trial: sign * scores[trial])
    groups = {trial: GROUPS[4 * place // len(ordered)] for place, trial in enumerate(ordered)}
    lines = []
    for trial in over:
        score = scores.get(trial.trial_id, math.nan)
        if trial.trial_id in scores or trial.status in ("Failed", "Diverged"):
            height = float(np.clip((score - low) / (high - low), 0, 1)) if high > low else score - low + 0.5
            places = [
                _place(bounds, trial.hyperparameters[name]) if name in trial.hyperparameters else 0.0
                for name, bounds in ranges.items()
            ]
            group = groups.get(trial.trial_id, LOST)
            lines.append(Line(trial=trial, group=group, places=(*places, height)))
    return axes, lines


def _axis(name: str, bounds: ParameterRange) -> Axis:
    absent = ((0.0, "not there"),) if bounds.when else ()
    if isinstance(bounds, CategoricalParameter):
        ticks = tuple((_place(bounds, value), look.shortened(str(value), 14)) for value in bounds.values)
        return Axis(name=name, ticks=absent + ticks, scatter=0.25 / len(bounds.values))
    low, high = bounds.min_value, bounds.max_value
    step = bounds.step or (1 if isinstance(bounds, IntegerParameter) else 0)
    return Axis(
        name=name + {"Linear": "", "Logarithmic": " (log)"}.get(bounds.resolved_scaling, " (reverse log)"),
        ticks=(*absent, (_place(bounds, low), short(low)), (1.0, short(high))),
        scatter=min(0.03, 0.25 * step / (high - low)),
    )


def _place(bounds: ParameterRange, value: Any) -> float:
    """Where on its axis a value is: above the bottom, where its hyperparameter may not be there."""
    if isinstance(bounds, CategoricalParameter):
        place = (position(bounds, value) + 0.5) / len(bounds.values)
    else:
        low, high = position(bounds, bounds.min_value), position(bounds, bounds.max_value)
        place = (position(bounds, value) - low) / (high - low)
    return ABOVE_ABSENT + (1 - ABOVE_ABSENT) * place if bounds.when else place


# ---- the picture


def parallel_coordinates(data: JobData) -> Figure | None:
    """The picture; None where no trial has a score."""
    axes, lines = coordinates(data)
    if not lines:
        return None
    drawn = _Drawn(data=data, axes=axes, lines=lines)
    title = f"Where the best of {count(len(lines), 'configuration')} lie"
    note = (
        f"A line is a trial; it crosses each axis at its value, on the scale on which that was searched, and ends at "
        f"its {look.shortened(data.metric)}, which for a trial that was stopped is the one that it was stopped with."
    )
    if any(axis.scatter for axis in axes):
        note += " Lines of equal whole numbers or categories are drawn a little beside each other."
    if len(lines) > len(GROUPS) * MOST_LINES:
        note += f" Of each group, {MOST_LINES} at most are drawn, spread evenly over the job."
    if (left_out := len(data.ranges) - len(axes) + 1) > 0:
        note += f" {count(left_out, 'hyperparameter')} left out: fixed, or beyond the first {MOST_AXES}."
    return Figure(
        name="parallel-coordinates",
        title=title,
        note=note,
        interactive=_interactive(drawn),
        still=partial(_still, drawn, title),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Data of both forms of the picture."""

    data: JobData
    axes: Sequence[Axis]
    lines: Sequence[Line]

    @property
    def groups(self) -> list[tuple[str, str, list[Line]]]:
        """By group, from what recedes to what stands out: its name, its colour, its lines without the best."""
        colours = {LOST: look.OCHRE, **dict(zip(GROUPS, look.ramp(len(GROUPS)), strict=True))}
        pairs = []
        for group, colour in colours.items():
            lines = [line for line in self.lines if line.group == group]
            if lines:
                drawn = np.unique(np.linspace(0, len(lines) - 1, MOST_LINES).round().astype(int))
                shown = [lines[place] for place in drawn if lines[place].trial != self.data.best]
                pairs.append((f"{group} ({len(lines)})", colour, shown))
        return pairs

    @property
    def best(self) -> list[Line]:
        return [line for line in self.lines if line.trial == self.data.best]

    @property
    def best_label(self) -> str:
        best = self.data.best
        return f"best, trial {best.number}: {look.score(self.data.objective(best))}" if best else ""

    def heights(self, line: Line) -> list[float]:
        """A line's places, each a little beside where many would share one; the same every time."""
        aside = [
            math.fmod((line.trial.number + 1) * (0.618034 + 0.1 * axis), 1.0) - 0.5 for axis in range(len(self.axes))
        ]
        return [place + 2 * axis.scatter * off for place, axis, off in zip(line.places, self.axes, aside, strict=True)]


def _interactive(drawn: _Drawn) -> go.Figure:
    traces = [
        _trace(drawn, lines, name=name, line={"color": colour, "width": 1.2}, opacity=0.7)
        for name, colour, lines in drawn.groups
    ]
    if drawn.best:
        traces.append(_trace(drawn, drawn.best, name=drawn.best_label, line={"color": look.BEST, "width": 4}))
    ticks = [(place, at, text) for place, axis in enumerate(drawn.axes) for at, text in axis.ticks]
    traces.append(
        go.Scatter(
            x=[place for place, _, _ in ticks],
            y=[at - 0.04 if at == 0 else at + 0.04 if at == 1 else at for _, at, _ in ticks],
            text=[look.plain(text) for _, _, text in ticks],
            mode="text",
            textfont={"size": 11},
            cliponaxis=False,
            showlegend=False,
            hoverinfo="skip",
        )
    )
    count_of = len(drawn.axes)
    return look.interactive(
        *traces,
        height=look.HEIGHT + 60,
        xaxis={
            "tickvals": list(range(count_of)),
            "ticktext": [look.plain(look.wrapped(axis.name, 12)).replace("\n", "<br>") for axis in drawn.axes],
            "range": [-0.4, count_of - 0.6],
            "gridwidth": 2,
        },
        yaxis={"visible": False, "range": [-0.09, 1.09]},
        hovermode="closest",
    )


def _trace(drawn: _Drawn, lines: Sequence[Line], **look_of: Any) -> go.Scatter:
    """Many trials as one line with gaps."""
    number = len(drawn.axes)
    heights = [[*drawn.heights(line), math.nan] for line in lines]
    says = [[*_says(drawn, line.trial), ""] for line in lines]
    return go.Scatter(
        x=np.tile(np.append(np.arange(number), number - 1), max(1, len(lines))).astype(np.float32),
        y=np.array(heights or [[math.nan] * (number + 1)], dtype=np.float32).ravel(),
        customdata=np.repeat([line.trial.number for line in lines] or [0], number + 1).astype(np.int32),
        text=[text for each in says for text in each],
        mode="lines",
        hovertemplate="trial %{customdata}<br>%{text}<extra></extra>",
        **look_of,
    )


def _says(drawn: _Drawn, trial: TrialRow) -> list[str]:
    names = [name for name in drawn.data.ranges if name in trial.hyperparameters and not fixed(drawn.data.ranges[name])]
    values = [f"{name}: {short(trial.hyperparameters[name])}" for name in names]
    score = f"{drawn.data.metric}: {look.score(drawn.data.objective(trial))}"
    return [look.plain(look.shortened(text, 60)) for text in [*values[:MOST_AXES], score]]


@look.styled
def _still(drawn: _Drawn, title: str) -> Still:
    still, axes = look.canvas(title, drawn.data.title)
    for _, colour, lines in drawn.groups:
        for line in lines:
            axes.plot(drawn.heights(line), color=colour, lw=1.1, alpha=0.75)
    for line in drawn.best:
        axes.plot(drawn.heights(line), color=look.BEST, lw=3.2, solid_joinstyle="round")
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
    for place, axis in enumerate(drawn.axes):
        for at, text in axis.ticks:
            off = -0.04 if at == 0 else 0.04 if at == 1 else 0.0
            axes.text(place, at + off, text, ha="center", va="center", fontsize=8.5, bbox=box)
    axes.set_xticks(range(len(drawn.axes)), [look.wrapped(axis.name, 14) for axis in drawn.axes])
    axes.set_yticks([])
    axes.set_xlim(-0.35, len(drawn.axes) - 0.65)
    axes.set_ylim(-0.09, 1.09)
    axes.grid(visible=True, axis="x", linewidth=1.6, color="#c9ced5")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0)
    handles = [Line2D([], [], color=colour, lw=2, label=name) for name, colour, _ in drawn.groups]
    if drawn.best:
        handles.append(Line2D([], [], color=look.BEST, lw=3.2, label=drawn.best_label))
    still.legend(handles=handles[::-1], loc="outside lower left", ncols=3, fontsize=9)
    return still
