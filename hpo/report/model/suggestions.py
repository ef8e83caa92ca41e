"""Suggestions: what the search's model expected of each trial when it suggested it, against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still

from hpo.record import TrialRow, repeats_of
from hpo.report.data import JobData
from hpo.report.model.belief import evenly
from hpo.report.pictures import Figure, look
from hpo.suggestions import WITHIN
from hpo.text import count

FEWEST = 3
"""Suggestions of a model below which there is no picture."""

MOST = 400
"""Trials that are drawn at most, spread evenly over the job."""

ENDED, STOPPED, RANDOM = "trained to the end", "stopped earlier", "at random, before the model"
COLOURS = {RANDOM: look.OCHRE, STOPPED: look.GREY, ENDED: look.BLUE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A configuration that the search suggested, and what its model expected of it then at the largest resource.

    Args:
        trial: its trial, the first of those that repeat it.
        measured: its last value, or the mean of its trials'.
        ended: whether it was trained to the end.
        expected: the median and the bounds of the interval of that value; None where it was suggested at random.
    """

    trial: TrialRow
    measured: float
    ended: bool
    expected: tuple[float, float, float] | None

    @property
    def held(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.expected is not None and self.expected[1] <= self.measured <= self.expected[2]

    @property
    def group(self) -> str:
        """What its point stands for."""
        return RANDOM if self.expected is None else ENDED if self.ended else STOPPED


def suggestions(data: JobData) -> list[Suggestion]:
    """The configurations of which the record has how they were suggested, and that came to a value, in their order."""
    found = []
    for trial in data.trials:
        believed, measured = trial.believed, data.score(trial)
        random = believed.get("by") == "random"
        if trial.number % repeats_of(data.job) or measured is None or not (random or "middle" in believed):
            continue
        bounds = None if random else (believed["middle"], believed["low"], believed["high"])
        ended = trial.status == "Completed"
        found.append(Suggestion(trial=trial, measured=measured, ended=ended, expected=bounds))
    return found


def expected_and_measured(data: JobData) -> Figure | None:
    """The picture; None where the record has too few suggestions of a model."""
    told = suggestions(data)
    modelled = [each for each in told if each.expected is not None]
    if len(modelled) < FEWEST:
        return None
    ended = [each for each in modelled if each.ended]
    title = f"What the model expected of {len(modelled)} configurations when it suggested them"
    if ended:
        held = sum(each.held for each in ended)
        title += f": of {len(ended)} trained to the end, {held} came within its {WITHIN:.0%} interval"
    value = "mean" if data.means else "value"
    note = (
        f"Points are the measured {look.shortened(data.metric)}, a configuration's last {value}. A line is the "
        f"{WITHIN:.0%} interval, and its tick the median, of the value that the model expected after "
        f"{count(data.max_resource, data.unit)}, from the results that the suggestion could read. It learns ranks, and "
        "expects nothing beyond the best and the worst value of that moment."
    )
    if any(not each.ended for each in modelled):
        note += f" What was stopped earlier was measured after fewer {data.unit}s than that."
    shown = told
    if len(told) > MOST:
        kept = {trial.trial_id for trial in evenly([each.trial for each in told], MOST)}
        shown = [each for each in told if each.trial.trial_id in kept]
        note += f" {MOST} of them are shown, spread evenly."
    return Figure(
        name="suggestions",
        title=title,
        note=note,
        interactive=_interactive(data, shown),
        still=partial(_still, data, shown, title),
    )


def _groups(data: JobData, told: Sequence[Suggestion]) -> list[tuple[str, list[Suggestion]]]:
    """The points by what they stand for, the best by itself."""
    best = None if data.best is None else data.best.number - data.best.number % repeats_of(data.job)
    groups = [(name, [e for e in told if e.group == name and e.trial.number != best]) for name in COLOURS]
    name = "the best" if data.means else f"trial {best}, the best"
    groups += [(name, [each]) for each in told if each.trial.number == best]
    return [(name, group) for name, group in groups if group]


def _bounds(told: Sequence[Suggestion]) -> list[float] | None:
    found = look.bounds([each.measured for each in told] + [each.expected[0] for each in told if each.expected])
    return None if found is None else list(found)


def _said(each: Suggestion) -> str:
    if each.expected is None:
        return "suggested at random"
    middle, low, high = map(look.score, each.expected)
    results = count(int(each.trial.believed.get("results", 0)), "result")
    return f"expected {middle}, {low} to {high}, from {results}"


def _interactive(data: JobData, told: Sequence[Suggestion]) -> go.Figure:
    traces: list[Any] = []
    for name, group in _groups(data, told):
        colour, known = COLOURS.get(name, look.BEST), [each for each in group if each.expected]
        if known:
            middle, low, high = (
                np.array(part, dtype=np.float32) for part in zip(*(each.expected for each in known), strict=True)
            )
            traces.append(
                go.Scatter(
                    x=np.array([each.trial.number for each in known], dtype=np.int32),
                    y=middle,
                    error_y={
                        "type": "data",
                        "symmetric": False,
                        "array": high - middle,
                        "arrayminus": middle - low,
                        "color": look.faded(colour, 0.45),
                        "thickness": 1.5,
                        "width": 0,
                    },
                    mode="markers",
                    marker={"symbol": "line-ew-open", "size": 8, "color": colour},
                    legendgroup=name,
                    showlegend=False,
                    hoverinfo="skip",
                )
            )
        traces.append(
            go.Scatter(
                x=np.array([each.trial.number for each in group], dtype=np.int32),
                y=np.array([each.measured for each in group], dtype=np.float32),
                mode="markers",
                marker={
                    "size": 7 if name in COLOURS else 11,
                    "color": colour,
                    "symbol": "circle" if name in COLOURS else "diamond",
                },
                name=name,
                legendgroup=name,
                text=[_said(each) for each in group],
                hovertemplate="trial %{x}: %{y:.5~g}<br>%{text}<extra></extra>",
            )
        )
    metric = look.plain(look.shortened(data.metric, 34))
    return look.interactive(
        *traces,
        showlegend=True,
        hovermode="closest",
        xaxis={"title": {"text": "trial, in the order of suggestion"}},
        yaxis={"title": {"text": metric}, "range": _bounds(told)},
    )


@look.styled
def _still(data: JobData, told: Sequence[Suggestion], title: str) -> Still:
    still, axes = look.canvas(title, f"{data.title}: expected when suggested, and measured")
    for name, group in _groups(data, told):
        colour, best = COLOURS.get(name, look.BEST), name not in COLOURS
        numbers = [each.trial.number for each in group]
        for each in group:
            if each.expected:
                axes.vlines(each.trial.number, *each.expected[1:], color=colour + "73", lw=1.2)
        known = [(each.trial.number, each.expected[0]) for each in group if each.expected]
        if known:
            axes.plot(*zip(*known, strict=True), "_", color=colour, ms=7)
        marker, size = ("D", 7) if best else ("o", 4.5)
        axes.plot(numbers, [each.measured for each in group], marker, color=colour, ms=size, label=name)
    if bounds := _bounds(told):
        axes.set_ylim(*bounds)
    axes.set_xlabel("trial, in the order of suggestion")
    axes.set_ylabel(look.shortened(data.metric))
    axes.legend(loc="best")
    return still
