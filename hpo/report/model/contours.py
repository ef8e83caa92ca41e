"""Contours: the model's value over two hyperparameters at a time, through the best configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Still
from numpy.typing import NDArray

from hpo.ranges import Scalar
from hpo.record import TrialRow
from hpo.report.data import JobData
from hpo.report.model.axes import Axis
from hpo.report.model.belief import Belief, evenly
from hpo.report.pictures import Figure, look

STEPS = 25
"""Values of each hyperparameter at which the model is asked."""

MOST = 5
"""Hyperparameters whose pairs can be chosen, the most important first."""

MOST_TRIALS = 200
"""Trials that are shown at most, spread evenly over all."""

LEVELS = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contour:
    """The surface over two hyperparameters.

    Args:
        across: the axis of the one.
        upward: the axis of the other.
        values: of both, at which the surface was asked.
        middle: what it says, shape (upward values, across values).
    """

    across: Axis
    upward: Axis
    values: tuple[Sequence[Scalar], Sequence[Scalar]]
    middle: NDArray[np.float32]

    @property
    def label(self) -> str:
        """Which two they are."""
        return f"{look.shortened(self.across.name, 24)} and {look.shortened(self.upward.name, 24)}"

    @property
    def smooth(self) -> bool:
        """Whether both have an order, so that values between those asked can be drawn."""
        return not (self.across.categorical or self.upward.categorical) and min(self.middle.shape) > 2

    @property
    def places(self) -> tuple[list[float], list[float]]:
        """Where the surface was asked."""
        one, other = (
            [axis.place(v) for v in values]
            for axis, values in zip((self.across, self.upward), self.values, strict=True)
        )
        return one, other


def contours(belief: Belief, order: Sequence[str]) -> list[Contour]:
    """A contour a pair of the first hyperparameters of an order, in that order."""
    return [
        found for one, other in combinations(order[:MOST], 2) if (found := _contour(belief, one, other)) is not None
    ]


def _contour(belief: Belief, one: str, other: str) -> Contour | None:
    through = belief.through(one, other)
    if through is None:
        return None
    across, upward = (Axis.of(name, belief.data.ranges[name]) for name in (one, other))
    values = across.values(STEPS), upward.values(STEPS)
    expected = belief.expected([{**through, one: x, other: y} for y in values[1] for x in values[0]])
    middle = expected.middle.reshape(len(values[1]), len(values[0])).astype(np.float32)
    return Contour(across=across, upward=upward, values=values, middle=middle)


def value_contours(belief: Belief, order: Sequence[str]) -> Figure | None:
    """The picture; None where there are fewer than two hyperparameters.

    Args:
        belief: the job's.
        order: names of hyperparameters, the most important first.
    """
    found = contours(belief, order)
    if not found:
        return None
    data, first = belief.data, found[0]
    best = data.best
    where = "" if best is None else f", and the diamond is trial {best.number}, the best"
    note = (
        f"The model's median for a trial of {data.max_resource:,} {data.unit}s, the other hyperparameters as in the "
        f"best trial. Points are trials{where}. Far from all of them, the model guesses."
    )
    if len(found) > 1:
        paired = {axis.name for each in found for axis in (each.across, each.upward)}
        note += f" The menu has all pairs of the {len(paired)} most important."
    title = f"Where the model expects the best: {first.label}"
    views = {each.label: _interactive(data, each) for each in found}
    return Figure(
        name="contours",
        title=title,
        note=note,
        interactive=views[first.label],
        views=views if len(views) > 1 else {},
        still=partial(_still, data, first, title),
    )


def _shown(data: JobData, contour: Contour) -> list[TrialRow]:
    """Trials that have both hyperparameters, without the best; of too many, some."""
    names = (contour.across.name, contour.upward.name)
    having = [t for t in data.trials if all(name in t.hyperparameters for name in names) and t != data.best]
    return evenly(having, MOST_TRIALS)


def _at(contour: Contour, trials: Sequence[TrialRow]) -> tuple[list[float], list[float]]:
    across, upward = contour.across, contour.upward
    return (
        [across.aside(trial.hyperparameters[across.name], trial.number) for trial in trials],
        [upward.aside(trial.hyperparameters[upward.name], trial.number + 7) for trial in trials],
    )


def _colours(data: JobData) -> list[str]:
    """From the worst value to the best, which is the strongest, in the order of values."""
    colours = ["#f1eef8", "#cfc8ee", "#a49ae0", look.VIOLET, "#54489f", "#322a66"]
    return colours if data.maximize else colours[::-1]


def _interactive(data: JobData, contour: Contour) -> go.Figure:
    x, y = (np.array(places, dtype=np.float32) for places in contour.places)
    colours = _colours(data)
    scale = [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]
    shared: dict[str, Any] = {
        "x": x,
        "y": y,
        "z": contour.middle,
        "colorscale": scale,
        "hovertemplate": "%{z:.5~g}<extra></extra>",
        "colorbar": {
            "title": {"text": look.plain(look.shortened(data.metric, 40)), "side": "bottom", "font": {"size": 12}},
            "orientation": "h",
            "thickness": 10,
            "len": 1.0,
            "outlinewidth": 0,
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "xpad": 0,
            "nticks": 6,
        },
    }
    surface = (
        go.Contour(
            ncontours=LEVELS,
            contours={"coloring": "fill"},
            line={"width": 0.5, "color": "rgba(255,255,255,0.5)"},
            **shared,
        )
        if contour.smooth
        else go.Heatmap(**shared)
    )
    traces: list[Any] = [surface]
    trials = _shown(data, contour)
    best = [data.best] if data.best is not None and _has(data.best, contour) else []
    for shown, marker in (
        (trials, {"size": 6, "color": "#ffffff", "line": {"width": 1.2, "color": "#2b3138"}}),
        (best, {"size": 13, "symbol": "diamond", "color": look.BEST, "line": {"width": 1.5, "color": "#ffffff"}}),
    ):
        across, upward = _at(contour, shown)
        traces.append(
            go.Scatter(
                x=np.array(across, dtype=np.float32),
                y=np.array(upward, dtype=np.float32),
                mode="markers",
                marker=marker,
                customdata=np.array([trial.number for trial in shown], dtype=np.int32),
                text=[look.score(data.objective(trial)) for trial in shown],
                hovertemplate="trial %{customdata}: %{text}<extra></extra>",
                cliponaxis=False,
            )
        )
    return look.interactive(
        *traces,
        height=520,
        showlegend=False,
        hovermode="closest",
        margin={"b": 90},
        xaxis={**contour.across.plotly(), "range": [0, 1], "showgrid": False},
        yaxis={**contour.upward.plotly(), "range": [0, 1], "showgrid": False},
    )


@look.styled
def _still(data: JobData, contour: Contour, title: str) -> Still:
    still, axes = look.canvas(title, f"{data.title}: the model at {data.max_resource:,} {data.unit}s")
    x, y = contour.places
    colours = LinearSegmentedColormap.from_list("values", _colours(data))
    if contour.smooth:
        drawn: Any = axes.contourf(x, y, contour.middle, levels=LEVELS, cmap=colours)
    else:
        drawn = axes.pcolormesh(x, y, contour.middle, cmap=colours, shading="nearest")
    axes.plot(*_at(contour, _shown(data, contour)), "o", color="white", mec="#2b3138", ms=4.5, mew=0.9)
    if data.best is not None and _has(data.best, contour):
        axes.plot(*_at(contour, [data.best]), "D", color=look.BEST, mec="white", ms=9)
    contour.across.draw(axes, "x")
    contour.upward.draw(axes, "y")
    axes.grid(visible=False)
    still.colorbar(drawn, ax=axes, label=look.shortened(data.metric))
    return still


def _has(trial: TrialRow, contour: Contour) -> bool:
    return all(axis.name in trial.hyperparameters for axis in (contour.across, contour.upward))
