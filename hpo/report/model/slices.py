"""Slices: the model's value along each hyperparameter, through the best configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Still

from hpo.ranges import Scalar
from hpo.record import TrialRow
from hpo.report.data import JobData
from hpo.report.model.axes import Axis
from hpo.report.model.belief import Belief, evenly
from hpo.report.pictures import Figure, look
from hpo.suggestions import WITHIN, Expected
from hpo.text import count, enumerated

STEPS = 61
"""Values at which the model is asked along a hyperparameter."""

MOST = 12
"""Hyperparameters that are shown at most, the most important first."""

MOST_TRIALS = 400
"""Trials of a group that are shown at most, spread evenly over all."""

COLUMNS, ROW = 2, 215
"""Panels beside each other, also on a phone, and pixels of one above another."""

ENDED, STOPPED, LOST = "trained to the end", "stopped earlier", "failed or diverged"
COLOURS = {STOPPED: look.GREY, ENDED: look.BLUE, LOST: look.OCHRE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The surface along one hyperparameter.

    Args:
        axis: the hyperparameter's.
        places: where the surface was asked, shape (n,).
        values: of the hyperparameter there.
        expected: what it says.
    """

    axis: Axis
    places: Sequence[float]
    values: Sequence[Scalar]
    expected: Expected

    @property
    def span(self) -> float:
        """By how much the middle moves."""
        return float(np.ptp(self.expected.middle))


def slices(belief: Belief, order: Sequence[str]) -> list[Slice]:
    """A slice a hyperparameter, in an order."""
    cut = []
    for name in order[:MOST]:
        through = belief.through(name)
        if through is None:
            continue
        axis = Axis.of(name, belief.data.ranges[name])
        values = axis.values(STEPS)
        expected = belief.expected([{**through, name: value} for value in values])
        places = [axis.place(value) for value in values]
        cut.append(Slice(axis=axis, places=places, values=values, expected=expected))
    return cut


def value_slices(belief: Belief, order: Sequence[str]) -> Figure | None:
    """The picture; None where no hyperparameter has a slice.

    Args:
        belief: the job's.
        order: names of hyperparameters, the most important first.
    """
    cut = slices(belief, order)
    if not cut:
        return None
    data = belief.data
    drawn = _Drawn(data=data, slices=cut, groups=_groups(data))
    title = headline(cut)
    best = data.best
    through = "the best trial" if best is None else f"trial {best.number}, the best"
    note = (
        f"Each panel moves one hyperparameter and leaves the others as in {through}. The line is the model's median "
        f"for a trial of {data.max_resource:,} {data.unit}s, the band its {WITHIN:.0%} interval. Points are trials; "
        "their other hyperparameters differ, so that they need not lie on the line."
    )
    if drawn.groups.get(STOPPED):
        note += " A trial that was stopped earlier stands at the value it had then, if the panel goes so far."
    if (left_out := len(belief.names) - len(cut)) > 0:
        note += f" {count(left_out, 'hyperparameter')} of less importance left out."
    return Figure(
        name="slices",
        title=title,
        note=note,
        interactive=_interactive(drawn),
        still=partial(_still, drawn, title),
    )


def headline(cut: Sequence[Slice]) -> str:
    """The hyperparameters that move the model's value most around the best configuration."""
    most = max(each.span for each in cut)
    steep = [each.axis.name for each in cut if most and each.span >= most / 2]
    if not steep:
        return "Around the best configuration, the model sees no difference"
    named = enumerated([look.shortened(name, 24) for name in steep[:3]])
    more = f" and {len(steep) - 3} more" if len(steep) > 3 else ""
    return f"Around the best configuration, {named}{more} move{'s' if len(steep) == 1 else ''} the model's value most"


def _groups(data: JobData) -> dict[str, list[TrialRow]]:
    """Trials by what became of them; of too many, some."""
    groups: dict[str, list[TrialRow]] = {STOPPED: [], ENDED: [], LOST: []}
    for trial in data.trials:
        if trial.status in ("Failed", "Diverged"):
            groups[LOST].append(trial)
        elif data.objective(trial) is not None and trial != data.best:
            groups[ENDED if trial.resource >= data.max_resource else STOPPED].append(trial)
    return {name: evenly(trials, MOST_TRIALS) for name, trials in groups.items() if trials}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Data of both forms of the picture."""

    data: JobData
    slices: Sequence[Slice]
    groups: Mapping[str, Sequence[TrialRow]]

    @property
    def bounds(self) -> tuple[float, float]:
        """The values that are shown: those of lines, bands and trials at their end, without a few that are far off."""
        edges = [edge for each in self.slices for edge in (each.expected.low, each.expected.high)]
        ended = [self.score(trial) for trial in self.groups.get(ENDED, ())]
        best = [] if self.data.best is None else [self.score(self.data.best)]
        middles = np.concatenate([each.expected.middle for each in self.slices])
        shown = np.concatenate([*edges, ended, best])
        low, high = look.bounds(shown, [*best, middles.min(), middles.max()]) or (shown.min(), shown.max())
        margin = 0.06 * ((high - low) or abs(high) or 1.0)
        return float(low - margin), float(high + margin)

    def score(self, trial: TrialRow) -> float:
        value = self.data.objective(trial)
        assert value is not None
        return value

    def points(self, axis: Axis, group: str) -> tuple[list[int], list[float], list[float]]:
        """Numbers, places and scores of a group's trials; those that were lost lie along the worst edge."""
        low, high = self.bounds
        inside = 0.03 * (high - low)
        worst = low + inside if self.data.maximize else high - inside
        scored = {trial.number: worst if group == LOST else self.score(trial) for trial in self.groups.get(group, ())}
        shown = [
            trial
            for trial in self.groups.get(group, ())
            if axis.name in trial.hyperparameters and low <= scored[trial.number] <= high
        ]
        places = [axis.aside(trial.hyperparameters[axis.name], trial.number) for trial in shown]
        return [trial.number for trial in shown], places, [scored[trial.number] for trial in shown]


def _interactive(drawn: _Drawn) -> go.Figure:
    rows = -(-len(drawn.slices) // COLUMNS)
    height = 70 + ROW * rows
    layout: dict[str, Any] = {}
    traces: list[Any] = []
    seen: set[str] = set()
    for place, each in enumerate(drawn.slices):
        row, column = divmod(place, COLUMNS)
        number = "" if place == 0 else str(place + 1)
        top, bottom = 1 - row / rows, 1 - (row + 1) / rows + 58 / height
        width = 1 / min(COLUMNS, len(drawn.slices))
        layout[f"xaxis{number}"] = {
            **each.axis.plotly(),
            "domain": [
                column * width + 0.012 * (column > 0),
                (column + 1) * width - 0.012 * (column == 0 and width < 1),
            ],
            "anchor": f"y{number}",
        }
        layout[f"yaxis{number}"] = {
            "domain": [bottom, top - 0.01],
            "anchor": f"x{number}",
            "range": list(drawn.bounds),
            "showticklabels": column == 0,
            "nticks": 5,
            **({"matches": "y"} if number else {}),
        }
        for trace in _panel(drawn, each):
            trace.update(xaxis=f"x{number}", yaxis=f"y{number}", showlegend=trace.legendgroup not in seen)
            seen.add(trace.legendgroup)
            traces.append(trace)
    return look.interactive(*traces, height=height, showlegend=True, hovermode="closest", **layout)


def _panel(drawn: _Drawn, each: Slice) -> list[Any]:
    """One hyperparameter's traces, each with its entry of the legend as its group."""
    expected = each.expected
    low, middle, high = (np.asarray(part, dtype=np.float32) for part in (expected.low, expected.middle, expected.high))
    x = np.array(each.places, dtype=np.float32)
    says = [look.plain(look.shortened(f"{each.axis.name} {_said(value)}", 60)) for value in each.values]
    band = f"{WITHIN:.0%} of its belief"
    if each.axis.categorical:
        line = go.Scatter(
            x=x,
            y=middle,
            mode="markers",
            marker={"symbol": "line-ew", "size": 22, "line": {"width": 2.5, "color": look.VIOLET}},
            error_y={
                "array": high - middle,
                "arrayminus": middle - low,
                "color": look.faded(look.VIOLET, 0.45),
                "thickness": 8,
                "width": 0,
            },
        )
        bands: list[Any] = []
    else:
        line = go.Scatter(x=x, y=middle, mode="lines", line={"color": look.VIOLET, "width": 2.5})
        bands = [
            go.Scatter(
                x=np.concatenate([x, x[::-1]]),
                y=np.concatenate([low, high[::-1]]),
                fill="toself",
                fillcolor=look.faded(look.VIOLET, 0.2),
                line={"width": 0},
                hoverinfo="skip",
                name=band,
                legendgroup=band,
            )
        ]
    line.update(
        name="the model",
        legendgroup="the model",
        text=says,
        customdata=[
            f"{look.score(float(below))} to {look.score(float(above))}" for below, above in zip(low, high, strict=True)
        ],
        hovertemplate="%{text}<br>%{y:.5~g}, within %{customdata}<extra></extra>",
    )
    return [*bands, *_points(drawn, each.axis), line, *_best(drawn, each.axis)]


def _points(drawn: _Drawn, axis: Axis) -> list[Any]:
    marks = []
    for group, colour in COLOURS.items():
        numbers, places, scores = drawn.points(axis, group)
        if numbers:
            symbol = (
                {"symbol": "x-thin-open", "color": colour, "line": {"width": 1.5}}
                if group == LOST
                else {"color": look.faded(colour, 0.65 if group == STOPPED else 0.9)}
            )
            marks.append(
                go.Scatter(
                    x=np.array(places, dtype=np.float32),
                    y=np.array(scores, dtype=np.float32),
                    customdata=np.array(numbers, dtype=np.int32),
                    mode="markers",
                    marker={"size": 4 if group == STOPPED else 6, **symbol},
                    cliponaxis=False,
                    name=group,
                    legendgroup=group,
                    hovertemplate="trial %{customdata}" + ("" if group == LOST else ": %{y:.5~g}") + "<extra></extra>",
                )
            )
    return marks


def _best(drawn: _Drawn, axis: Axis) -> list[Any]:
    best = drawn.data.best
    if best is None or axis.name not in best.hyperparameters:
        return []
    name = f"trial {best.number}, the best"
    return [
        go.Scatter(
            x=[axis.place(best.hyperparameters[axis.name])],
            y=[drawn.score(best)],
            mode="markers",
            marker={"size": 11, "color": look.BEST, "symbol": "diamond"},
            cliponaxis=False,
            name=name,
            legendgroup=name,
            hovertemplate=f"{name}: %{{y:.5~g}}<extra></extra>",
        )
    ]


def _said(value: Scalar) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@look.styled
def _still(drawn: _Drawn, title: str) -> Still:
    columns = min(3, len(drawn.slices))
    rows = -(-len(drawn.slices) // columns)
    still, panels = look.panels(
        title, f"{drawn.data.title}: the model at {drawn.data.max_resource:,} {drawn.data.unit}s", rows, columns
    )
    for place, axes in enumerate(panels):
        if place >= len(drawn.slices):
            axes.set_visible(False)
            continue
        _still_panel(drawn, drawn.slices[place], axes)
        axes.set_ylim(drawn.bounds)
        if place % columns:
            axes.tick_params(axis="y", labelleft=False)
        else:
            axes.set_ylabel(look.wrapped(drawn.data.metric, 22))
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    still.legend([*handles.values()], [*handles], loc="outside lower left", ncols=5, fontsize=9)
    return still


def _still_panel(drawn: _Drawn, each: Slice, axes: Axes) -> None:
    expected, best = each.expected, drawn.data.best
    for group, colour in COLOURS.items():
        _, places, scores = drawn.points(each.axis, group)
        if places:
            mark = "x" if group == LOST else "o"
            axes.plot(
                places,
                scores,
                mark,
                color=colour,
                ms=2.5 if group == STOPPED else 4,
                alpha=0.7,
                label=group,
                clip_on=False,
                mew=1.2 if group == LOST else 0,
            )
    if each.axis.categorical:
        reach = [expected.middle - expected.low, expected.high - expected.middle]
        axes.errorbar(
            each.places,
            expected.middle,
            yerr=reach,
            fmt="_",
            ms=14,
            mew=2.2,
            color=look.VIOLET,
            ecolor=look.VIOLET + "60",
            elinewidth=6,
            label="the model",
        )
    else:
        axes.fill_between(
            each.places,
            expected.low,
            expected.high,
            color=look.VIOLET,
            alpha=0.2,
            lw=0,
            label=f"{WITHIN:.0%} of its belief",
        )
        axes.plot(each.places, expected.middle, color=look.VIOLET, lw=2.2, label="the model")
    if best is not None and each.axis.name in best.hyperparameters:
        place = each.axis.place(best.hyperparameters[each.axis.name])
        axes.plot(
            [place],
            [drawn.score(best)],
            "D",
            color=look.BEST,
            ms=7,
            label=f"trial {best.number}, the best",
            clip_on=False,
        )
    each.axis.draw(axes, "x")
