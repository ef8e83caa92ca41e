"""Predictions: each trial as the model foretells it from all others, against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still
from scipy.stats import spearmanr

from hpo.record import TrialRow
from hpo.report.data import JobData
from hpo.report.model.belief import FEWEST, Belief
from hpo.report.pictures import Figure, look
from hpo.suggestions import WITHIN
from hpo.text import count

ENDED, STOPPED = "trained to the end", "stopped earlier"
COLOURS = {STOPPED: look.GREY, ENDED: look.BLUE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A trial's last value, and what the model expects of it without any result of its configuration.

    Args:
        trial: which.
        measured: the value.
        middle: what was as likely to be exceeded as not.
        low: the lesser bound of its interval.
        high: the greater one.
        ended: whether it was trained to the end.
    """

    trial: TrialRow
    measured: float
    middle: float
    low: float
    high: float
    ended: bool

    @property
    def held(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= self.measured <= self.high


def predictions(belief: Belief) -> list[Prediction]:
    """Of each trial that the model learned from, its last value with its prediction, in the order of trials."""
    learned = belief.surface.learned
    expected = belief.in_units(*belief.surface.left_out([int(belief.groups[place]) for place in learned]))
    last: dict[str, Prediction] = {}
    for row in sorted(range(len(learned)), key=lambda row: learned[row]):
        place = learned[row]
        if place >= len(belief.trials) or belief.trials[place].status in ("Failed", "Diverged"):
            continue
        trial, seen = belief.trials[place], belief.observations[place]
        last[trial.trial_id] = Prediction(
            trial=trial,
            measured=seen.value,
            middle=float(expected.middle[row]),
            low=float(expected.low[row]),
            high=float(expected.high[row]),
            ended=seen.resource >= belief.data.max_resource,
        )
    return list(last.values())


def agreement(told: Sequence[Prediction]) -> float | None:
    """Spearman's rank correlation of predicted and measured values; None where either are all the same, or too few."""
    measured, middle = [each.measured for each in told], [each.middle for each in told]
    if len(told) < 3 or len(set(measured)) < 2 or len(set(middle)) < 2:
        return None
    return float(spearmanr(measured, middle).statistic)


def left_out_predictions(belief: Belief) -> Figure | None:
    """The picture; None where too few trials have a value."""
    told = predictions(belief)
    whole = agreement(told)
    if whole is None:
        return None
    data = belief.data
    ended = [each for each in told if each.ended]
    at_end = agreement(ended) if FEWEST <= len(ended) < len(told) else None
    title = f"Rank correlation of predicted and measured: {_said(whole)}"
    if at_end is not None:
        title += f", and {_said(at_end)} among the {len(ended)} trained to the end"
    held = sum(each.held for each in told)
    note = (
        f"Each trial's last {look.shortened(data.metric)} against the model's median of it from all other "
        "configurations: leave-one-out, which says how far the slices and contours above can be relied on. "
        f"Thin lines are {WITHIN:.0%} intervals; {held / len(told):.0%} of them hold what was measured. "
        "Trials that failed or diverged taught the model and are not shown."
    )
    if len(told) < sum(data.objective(trial) is not None for trial in data.trials):
        note += f" Of many trials, the model learns from those trained longest: {count(len(told), 'trial')}."
    return Figure(
        name="predictions",
        title=title,
        note=note,
        interactive=_interactive(data, told),
        still=partial(_still, data, told, title),
    )


def _said(correlation: float) -> str:
    return f"{correlation:.2f}".replace("-0.00", "0.00")


def _groups(data: JobData, told: Sequence[Prediction]) -> list[tuple[str, list[Prediction]]]:
    groups = [(name, [e for e in told if e.ended == (name == ENDED) and e.trial != data.best]) for name in COLOURS]
    best = [(f"trial {each.trial.number}, the best", [each]) for each in told if each.trial == data.best]
    return [(name, group) for name, group in [*groups, *best] if group]


def _bounds(told: Sequence[Prediction]) -> tuple[float, float]:
    """One scale for both axes."""
    values = [value for each in told for value in (each.measured, each.middle)]
    low, high = look.bounds(values) or (min(values), max(values))
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def _interactive(data: JobData, told: Sequence[Prediction]) -> go.Figure:
    low, high = _bounds(told)
    traces: list[Any] = [
        go.Scatter(
            x=[low, high],
            y=[low, high],
            mode="lines",
            line={"color": look.GREY, "dash": "dot", "width": 1.5},
            name="as predicted",
            hoverinfo="skip",
        )
    ]
    for name, group in _groups(data, told):
        middle, below, above = (
            np.array(part) for part in zip(*((e.middle, e.low, e.high) for e in group), strict=True)
        )
        colour = COLOURS.get(name, look.BEST)
        traces.append(
            go.Scatter(
                x=middle.astype(np.float32),
                y=np.array([each.measured for each in group], dtype=np.float32),
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": (above - middle).astype(np.float32),
                    "arrayminus": (middle - below).astype(np.float32),
                    "color": look.faded(colour, 0.35),
                    "thickness": 1,
                    "width": 0,
                },
                mode="markers",
                marker={
                    "size": 11 if name not in COLOURS else 7,
                    "color": colour,
                    "symbol": "circle" if name in COLOURS else "diamond",
                },
                name=name,
                customdata=np.array([each.trial.number for each in group], dtype=np.int32),
                text=[f"{look.score(each.low)} to {look.score(each.high)}" for each in group],
                hovertemplate="trial %{customdata}: %{y:.5~g}<br>predicted %{x:.5~g}, within %{text}<extra></extra>",
            )
        )
    metric = look.plain(look.shortened(data.metric, 34))
    return look.interactive(
        *traces,
        height=480,
        showlegend=True,
        hovermode="closest",
        xaxis={"title": {"text": f"predicted {metric}"}, "range": [low, high]},
        yaxis={"title": {"text": f"measured {metric}"}, "range": [low, high]},
    )


@look.styled
def _still(data: JobData, told: Sequence[Prediction], title: str) -> Still:
    still, axes = look.canvas(title, f"{data.title}: leave-one-out predictions")
    low, high = _bounds(told)
    axes.plot([low, high], [low, high], color=look.GREY, linestyle=":", lw=1.5, label="as predicted")
    for name, group in _groups(data, told):
        colour, best = COLOURS.get(name, look.BEST), name not in COLOURS
        reach = [[each.middle - each.low for each in group], [each.high - each.middle for each in group]]
        axes.errorbar(
            [each.middle for each in group],
            [each.measured for each in group],
            xerr=reach,
            fmt="D" if best else "o",
            color=colour,
            ecolor=colour + "59",
            elinewidth=0.8,
            ms=7 if best else 4.5,
            label=name,
        )
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_xlabel(f"predicted {look.shortened(data.metric)}")
    axes.set_ylabel(f"measured {look.shortened(data.metric)}")
    axes.legend(loc="best")
    return still
