"""Hyperband's brackets over time: each trial's rungs by gang, and the idle times of gangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Still
from matplotlib.patches import Patch

from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.figure import Figure
from hpo.report.pictures.timeline import spans
from hpo.text import count

THINNEST = 1 / 1500
"""Part of the whole time below which a bar is too thin to be seen: what is no training is then left out."""

LABELLED = 1 / 22
"""Part of the whole time from which a bar has room for its label."""

THICK, THIN = 0.74, 0.26
BESIDE = "#5f7288"
"""Colour of what trains beside the search: the probe, and the un-tuned run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stretch of a gang's row.

    Args:
        row: the gang, from 0, in the order in which gangs began.
        group: what it is coloured by and listed under.
        start: seconds since the job was created.
        seconds: how long.
        says: trial, rung and what was done.
        label: the trial's number and the units that it reached, for bars with room for that.
    """

    row: int
    group: str
    start: float
    seconds: float
    says: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Data of both forms of the picture.

    Args:
        rows: the gangs' labels.
        workers: how many each has.
        bars: by row and time.
        colours: by group, in the legend's order.
        seconds: the whole time.
        shares: part of all that was billed, by kind.
    """

    rows: tuple[str, ...]
    workers: tuple[int, ...]
    bars: tuple[Bar, ...]
    colours: dict[str, str]
    seconds: float
    shares: dict[str, float]


def chart(data: JobData) -> Chart | None:
    """A job's time as bars; None where the record has none. All bars together are all that was billed for gangs."""
    line = spans(data)
    if not line:
        return None
    brackets = _brackets(data)
    numbers = {trial.trial_id: trial for trial in data.trials}
    workers = {span.gang: span.workers for span in line}
    rows = {gang: place for place, gang in enumerate(workers)}
    bars = []
    for span in line:
        trial = numbers.get(span.trial_id)
        group = span.kind
        if span.kind == "training":
            group = "probe, un-tuned" if trial is None else brackets.get(trial.bracket, "training")
        who = f"trial {trial.number}" if trial else {"untuned": "un-tuned"}.get(span.trial_id, span.trial_id)
        rung = f" to {count(span.resource, data.unit)}" if span.resource else ""
        says = f"{who}{rung}: {span.kind}" if who else span.kind
        bars.append(
            Bar(
                row=rows[span.gang],
                group=group,
                start=span.start,
                seconds=span.seconds,
                says=says,
                label=f"{trial.number}→{span.resource}" if trial and span.resource and span.kind == "training" else "",
            )
        )
    total = sum(span.worker_seconds for span in line) or 1.0
    schedules = dict(zip(dict.fromkeys(brackets.values()), look.SERIES * len(brackets), strict=False))
    colours = {**schedules, "training": look.BLUE, "probe, un-tuned": BESIDE}
    colours |= {kind: look.KINDS[kind] for kind in ("starting", "checkpointing", "idle")}
    there = {bar.group for bar in bars}
    return Chart(
        rows=tuple(f"gang {place}" for place in range(1, len(rows) + 1)),
        workers=tuple(workers.values()),
        bars=tuple(bars),
        colours={group: colour for group, colour in colours.items() if group in there},
        seconds=max(span.end for span in line),
        shares={kind: sum(span.worker_seconds for span in line if span.kind == kind) / total for kind in look.KINDS},
    )


def brackets(data: JobData) -> Figure | None:
    """The picture; None where the record does not say how long anything took."""
    gantt = chart(data)
    if gantt is None:
        return None
    whose = "their" if len(gantt.rows) > 1 else "its"
    title = f"{_gangs(gantt)} trained for {gantt.shares['training']:.0%} of {whose} time"
    note = (
        f"A row is a gang; a wide bar is a trial, coloured by how its bracket cuts, with its number and the "
        f"{data.unit}s that it reached; a thin bar is time in which the gang trained nothing. "
        f"What is no training and too thin to be seen is left out."
    )
    return Figure(
        name="brackets",
        title=title,
        note=note,
        interactive=_interactive(gantt),
        still=partial(_still, data, gantt, title),
    )


def _gangs(gantt: Chart) -> str:
    sizes = sorted(set(gantt.workers))
    each = " or ".join(map(str, sizes)) + (" workers" if sizes[-1] > 1 else " worker")
    return f"{count(len(gantt.rows), 'gang')} of {each}"


def _brackets(data: JobData) -> dict[int | None, str]:
    """The brackets' names. Brackets that cut at the same rungs are one, however often a plan repeats them."""
    called: dict[int | None, str] = {}
    for place, bracket in enumerate(data.job.plan.get("brackets", ())):
        cuts = ", ".join(f"{rung:,}" for rung in bracket["rungs"][:-1])
        called[place] = f"cut at {cuts}" if cuts else "never cut"
    return called


def _seen(gantt: Chart) -> list[Bar]:
    """The bars that are drawn."""
    kinds, thinnest = set(look.KINDS) - {"training"}, THINNEST * gantt.seconds
    return [bar for bar in gantt.bars if bar.seconds > 0 and (bar.seconds >= thinnest or bar.group not in kinds)]


# ---- interactive


def _interactive(gantt: Chart) -> go.Figure:
    divisor, unit = look.time_unit(gantt.seconds)
    seen, traces = _seen(gantt), []
    for group, colour in gantt.colours.items():
        bars = [bar for bar in seen if bar.group == group]
        thin = group in look.KINDS and group != "training"
        pattern: dict[str, Any] = {"shape": "/", "size": 5, "solidity": 0.5} if group == "starting" else {"shape": ""}
        traces.append(
            go.Bar(
                orientation="h",
                name=group,
                base=np.array([bar.start / divisor for bar in bars], dtype=np.float32),
                x=np.array([bar.seconds / divisor for bar in bars], dtype=np.float32),
                y=np.array([bar.row for bar in bars], dtype=np.int32),
                width=THIN if thin and group != "checkpointing" else THICK,
                marker={"color": colour, "line": {"width": 0}, "pattern": pattern},
                customdata=np.array([bar.seconds for bar in bars], dtype=np.float32),
                text=[bar.label if bar.seconds >= LABELLED * gantt.seconds else "" for bar in bars],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                textfont={"color": "white", "size": 11},
                constraintext="none",
                hovertext=[look.plain(bar.says) for bar in bars],
                hovertemplate="%{hovertext}, %{customdata:.3~g} s<extra></extra>",
            )
        )
    rows = len(gantt.rows)
    return look.interactive(
        *traces,
        height=min(900, 200 + 40 * rows),
        barmode="overlay",
        xaxis={"title": {"text": f"{unit} since the job was created"}, "rangemode": "tozero"},
        yaxis=look.rows(gantt.rows),
    )


# ---- still


@look.styled
def _still(data: JobData, gantt: Chart, title: str) -> Still:
    divisor, unit = look.time_unit(gantt.seconds)
    height = min(9.0, 1.9 + 0.5 * len(gantt.rows))
    still, axes = look.canvas(title, f"{data.title}: what each gang did", height=height)
    seen = _seen(gantt)
    for group, colour in gantt.colours.items():
        _bars(axes, [bar for bar in seen if bar.group == group], group, colour, divisor)
    for bar in seen:
        if bar.label and bar.seconds >= LABELLED * gantt.seconds:
            middle = (bar.start + bar.seconds / 2) / divisor
            axes.text(middle, bar.row, bar.label, color="white", ha="center", va="center", fontsize=8)
    look.still_rows(axes, gantt.rows)
    axes.set_xlim(0, gantt.seconds / divisor * 1.01)
    axes.set_xlabel(f"{unit} since the job was created")
    handles = [Patch(label=group, **_filled(group, colour)) for group, colour in gantt.colours.items()]
    still.legend(handles=handles, loc="outside lower left", ncols=4, fontsize=9)
    return still


def _bars(axes: Axes, bars: Sequence[Bar], group: str, colour: str, divisor: float) -> None:
    thin = group in ("starting", "idle")
    axes.barh(
        [bar.row for bar in bars],
        [bar.seconds / divisor for bar in bars],
        left=[bar.start / divisor for bar in bars],
        height=THIN if thin else THICK,
        **_filled(group, colour),
        rasterized=len(bars) > 2000,
    )


def _filled(group: str, colour: str) -> dict[str, Any]:
    if group == "starting":
        return {"facecolor": "none", "edgecolor": colour, "hatch": "/////", "linewidth": 0}
    return {"facecolor": colour, "linewidth": 0}
