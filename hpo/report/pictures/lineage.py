"""Lineage: trials and the trials that they began from, over units of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure as Still

from hpo.record import TrialRow
from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.text import count

THICK = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a trial trained itself.

    Args:
        trial: its row.
        row: its place in the picture, from 0: a trial stands where the one stood that ended for it.
        used: units up to which the best trial's model comes from it; 0 where it does not.
    """

    trial: TrialRow
    row: int
    used: int

    @property
    def leads(self) -> bool:
        """Whether the best trial's model has a part of it."""
        return self.used > 0

    def part(self, *, leads: bool) -> tuple[int, int]:
        """Units behind which a part of it begins, and where that ends: the part that the best's model has, or not."""
        begin = self.trial.parent_resource
        return (begin, max(begin, self.used)) if leads else (max(begin, self.used), self.trial.resource)

    @property
    def label(self) -> str:
        """Its number."""
        return str(self.trial.number)


def lives(data: JobData) -> list[Life]:
    """Trials by their places; empty where none began from another."""
    trials = {trial.trial_id: trial for trial in data.trials}
    if not any(trial.parent in trials for trial in trials.values()):
        return []
    line = ancestry(data)
    used = {parent.trial_id: trial.parent_resource for trial, parent in pairwise(line)}
    used |= {trial.trial_id: trial.resource for trial in line[:1]}
    rows: dict[str, int] = {}
    for trial in trials.values():
        rows[trial.trial_id] = rows[trial.replaces] if trial.replaces in rows else len(set(rows.values()))
    return [Life(trial=trial, row=rows[name], used=used.get(name, 0)) for name, trial in trials.items()]


def ancestry(data: JobData) -> list[TrialRow]:
    """The best trial, the one that it began from, and so on."""
    trials = {trial.trial_id: trial for trial in data.trials}
    line = [] if data.best is None else [data.best]
    while line and line[-1].parent in trials:
        line.append(trials[line[-1].parent])
    return line


def parents_and_forks(data: JobData) -> Figure | None:
    """The picture; None where no trial began from another."""
    found = lives(data)
    if not found:
        return None
    forks = sum(bool(life.trial.parent) for life in found)
    title = f"{count(forks, 'trial')} began from another's checkpoint"
    line = ancestry(data)
    if len(line) > 1:
        title += f"; the best, trial {line[0].number}, from trial {line[1].number}" + (
            f", and so on back to trial {line[-1].number}" if len(line) > 2 else ""
        )
    note = (
        f"A bar is what a trial trained itself, in {data.unit}s, with its number; where it took the place of another, "
        "it stands behind that. A line leads from the checkpoint that a trial began from. What the best trial's model "
        "comes from is marked, up to where it was taken over."
    )
    return Figure(
        name="lineage",
        title=title,
        note=note,
        interactive=_interactive(data, found),
        still=partial(_still, data, found, title),
    )


def _jumps(found: Sequence[Life], *, leads: bool) -> list[tuple[int, int, int]]:
    """Units, and the rows of parent and trial, of each beginning."""
    rows: Mapping[str, int] = {life.trial.trial_id: life.row for life in found}
    return [
        (life.trial.parent_resource, rows[life.trial.parent], life.row)
        for life in found
        if life.trial.parent in rows and life.leads == leads
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    """A part of a trial's life: the first one has its number."""

    life: Life
    begin: int
    end: int

    @property
    def label(self) -> str:
        return self.life.label if self.begin == self.life.trial.parent_resource else ""


def _groups(found: Sequence[Life]) -> list[tuple[str, str, list[_Bar], list[tuple[int, int, int]]]]:
    groups = []
    for leads, name, colour in ((True, "of the best", look.BEST), (False, "others", look.BLUE)):
        parts = [(life, *life.part(leads=leads)) for life in found]
        bars = [_Bar(life=life, begin=begin, end=end) for life, begin, end in parts if end > begin]
        groups.append((name, colour, bars, _jumps(found, leads=leads)))
    return groups


def _interactive(data: JobData, found: Sequence[Life]) -> go.Figure:
    traces: list[go.Bar | go.Scatter] = []
    for name, colour, group, jumps in _groups(found):
        traces.append(
            go.Bar(
                orientation="h",
                name=name,
                base=np.array([bar.begin for bar in group], dtype=np.int32),
                x=np.array([bar.end - bar.begin for bar in group], dtype=np.int32),
                y=np.array([bar.life.row for bar in group], dtype=np.int32),
                width=THICK,
                marker={"color": colour, "line": {"width": 1, "color": "white"}},
                text=[bar.label for bar in group],
                textposition="inside",
                insidetextanchor="start",
                textangle=0,
                textfont={"color": "white", "size": 11},
                hovertext=[look.plain(_says(data, bar.life.trial)) for bar in group],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
        traces.append(
            go.Scatter(
                mode="lines",
                x=[units for jump in jumps for units in (jump[0], jump[0], None)],
                y=[row for jump in jumps for row in (*jump[1:], None)],
                line={"color": colour, "width": 1.5},
                showlegend=False,
                hoverinfo="skip",
            )
        )
    rows = 1 + max(life.row for life in found)
    return look.interactive(
        *traces,
        height=min(900, 160 + 28 * rows),
        barmode="overlay",
        xaxis={"title": {"text": f"{data.unit}s"}, "rangemode": "tozero"},
        yaxis=look.rows(_names(found)),
    )


def _names(found: Sequence[Life]) -> list[str]:
    first: dict[int, str] = {}
    for life in found:
        first.setdefault(life.row, f"trial {life.trial.number}")
    return list(first.values())


def _says(data: JobData, trial: TrialRow) -> str:
    """A trial in a line: where it came from, and what it came to."""
    begun = f" from {trial.parent} at {trial.parent_resource}" if trial.parent else ""
    values = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in trial.hyperparameters.items()
    )
    return f"{trial.trial_id}{begun}: {look.score(data.objective(trial))} at {trial.resource}; {values}"


@look.styled
def _still(data: JobData, found: Sequence[Life], title: str) -> Still:
    names = _names(found)
    still, axes = look.canvas(
        title, f"{data.title}: what each trial began from", height=min(9.0, 1.9 + 0.3 * len(names))
    )
    for name, colour, group, jumps in _groups(found):
        rows, begin = [bar.life.row for bar in group], [bar.begin for bar in group]
        length = [bar.end - bar.begin for bar in group]
        axes.barh(rows, length, left=begin, height=THICK, color=colour, label=name, ec="white")
        for units, parent, row in jumps:
            axes.plot([units, units], [parent, row], color=colour, linewidth=1.2)
        for bar, row in zip(group, rows, strict=True):
            place: dict[str, Any] = {"textcoords": "offset points", "xytext": (4, 0), "ha": "left", "va": "center"}
            axes.annotate(bar.label, (bar.begin, row), color="white", fontsize=8, **place)
    look.still_rows(axes, names)
    axes.set_xlabel(f"{data.unit}s")
    still.legend(loc="outside lower left", ncols=2, fontsize=9)
    return still
