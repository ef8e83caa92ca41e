"""The best score against its cost, beside a random search of the same trials."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Still
from matplotlib.ticker import StrMethodFormatter
from numpy.typing import NDArray

from hpo.record import repeats_of
from hpo.report.data import JobData
from hpo.report.pictures import look
from hpo.report.pictures.baseline import Baseline, baseline, baseline_note
from hpo.report.pictures.figure import Figure
from hpo.report.pictures.timeline import billed_until
from hpo.strategies import mean
from hpo.text import enumerated

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress:
    """The best score as it was found.

    Args:
        billed: worker-seconds billed when the best score changed, rising; the last is all that was billed.
        best: the best score from there on.
    """

    billed: Floats
    best: Floats


def progress(data: JobData) -> Progress | None:
    """The score of the best trial at each moment, as the job compares trials; None if none has one.

    Where each configuration is trained several times, it is the mean of the best one's trials.
    Where the last value counts, a trial that gets worse as it goes on takes the best score down with it.
    """
    if data.best is None:
        return None
    sign = 1.0 if data.maximize else -1.0
    billed = billed_until(data)
    current: dict[int, float] = {}
    best = -math.inf
    steps: list[tuple[float, float | None]] = []
    for at, trial, value in _of_configurations(data, _events(data)):
        before = current.pop(trial, -math.inf)
        if value is not None:
            value *= sign
            current[trial] = max(before, value) if data.by_best else value
        now = current.get(trial, -math.inf)
        # Looking at all others is only needed where the best one got worse.
        top = max(current.values(), default=-math.inf) if before == best and now < best else max(best, now)
        if top != best:
            best = top
            steps.append((billed(at), sign * best if current else math.nan))
    steps.append((sum(data.billed.values()), data.score(data.best)))
    at_cost = dict(steps)
    return Progress(billed=np.array([*at_cost]), best=np.array([*at_cost.values()]))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Event:
    """A trial's score changed.

    Args:
        at: when.
        number: the trial's.
        place: of the report that has it, among those of the trial.
        value: the score; None when the trial failed or diverged.
    """

    at: float
    number: int
    place: int
    value: float | None = field(compare=False)


def _of_configurations(data: JobData, events: Iterable[_Event]) -> Iterator[tuple[float, int, float | None]]:
    """When which configuration's score changed, and to what: the mean, whenever all its trials have come as far."""
    repeats, better = repeats_of(data.job), max if data.maximize else min
    members: dict[int, dict[int, _Event]] = defaultdict(dict)
    for event in events:
        together = members[event.number // repeats]
        before = together.get(event.number)
        if data.by_best and before is not None and event.value is not None and before.value is not None:
            event = replace(event, value=better(before.value, event.value))
        together[event.number] = event
        values = [each.value for each in together.values()]
        if None in values:
            yield event.at, event.number // repeats, None
        elif len(values) == repeats and len({each.place for each in together.values()}) == 1:
            yield event.at, event.number // repeats, mean([value for value in values if value is not None])


def _events(data: JobData) -> list[_Event]:
    """The changes of all trials' scores, by time."""
    events: list[_Event] = []
    for trial in data.trials:
        reports = data.reports.get(trial.trial_id, ())
        for place, report in enumerate(reports):
            if report.objective is not None:
                # Of an assignment's reports, which are recorded together, the last one is what is compared.
                last = place + 1 == len(reports) or reports[place + 1].at > report.at
                if last or data.by_best:
                    events.append(_Event(at=report.at, number=trial.number, place=place, value=report.objective))
        if trial.status in ("Failed", "Diverged") and reports:
            ended = max(trial.ended_at or reports[-1].at, reports[-1].at)
            events.append(_Event(at=ended, number=trial.number, place=len(reports), value=None))
    return sorted(events)


# ---- the picture


def best_by_cost(data: JobData) -> Figure | None:
    """The picture; None where no trial has a score yet, or nothing was billed."""
    curve, random = progress(data), baseline(data)
    if curve is None or not curve.billed[-1]:
        return None
    score = f"{look.shortened(data.metric)} {look.score(float(curve.best[-1]))}"
    title = f"{score} for {look.amount(float(curve.billed[-1]))} worker-seconds"
    which = "configuration so far, the mean of its trials" if data.means else "trial so far"
    note = f"The line is the score of the best {which}"
    note += "." if data.by_best else f"; where it gets worse, that {which.split()[0]} did as it trained on."
    if random is not None:
        title += f"; all trials trained to the end would take about {look.amount(float(random.billed[-1]))}"
        note += baseline_note(data)
    untuned = data.objective(data.untuned) if data.untuned else None
    drawn = _Drawn(data=data, found=curve, random=random, untuned=untuned)
    return Figure(
        name="progress",
        title=title,
        note=note,
        interactive=_interactive(drawn),
        still=partial(_still, drawn, title),
    )


def best_compared(jobs: Sequence[JobData]) -> Figure | None:
    """Several jobs' best scores against what was billed; None where none has one, or their objectives are not one."""
    names = look.distinct([job.title for job in jobs])
    curves = {
        name: line
        for name, job in zip(names, jobs, strict=True)
        if (line := progress(job)) is not None and line.billed[-1]
    }
    metrics = {(job.metric, job.maximize) for job in jobs}
    if not curves or len(metrics) > 1:
        return None
    ((objective, maximize),) = metrics
    metric = look.shortened(objective)
    score = look.score((max if maximize else min)(float(line.best[-1]) for line in curves.values()))
    # Of those that are as good to all digits that are said, the one that cost least.
    alike = [name for name, line in curves.items() if look.score(float(line.best[-1])) == score]
    first = min(alike, key=lambda name: float(curves[name].billed[-1]))
    title = (
        f"{look.shortened(first)} found {'the best ' if len(alike) == 1 else ''}{metric} {score} for "
        f"{look.amount(float(curves[first].billed[-1]))} worker-seconds"
    )
    if len(alike) > 1:
        others = [look.shortened(name) for name in alike if name != first]
        title += f", as {enumerated(others) if len(others) < 4 else f'{len(others)} others'} did for more"
    note = "A line is the score of a job's best trial so far; it ends at all that was billed for the job."
    return Figure(
        name="progress-compared",
        title=title,
        note=note,
        interactive=_interactive_compared(curves, metric),
        still=partial(_still_compared, curves, metric, title),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """Data of both forms of the picture."""

    data: JobData
    found: Progress
    random: Baseline | None
    untuned: float | None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Values of the axis: from somewhat below where the baseline begins, since a first score may lie far off."""
        values = [*self.found.best]
        if self.random is not None:
            values += [*self.random.expected, *self.random.low, *self.random.high]
        return look.bounds(values, [self.untuned])


def _interactive(drawn: _Drawn) -> go.Figure:
    curve, random, data = drawn.found, drawn.random, drawn.data
    traces = []
    if random is not None:
        band = np.concatenate([random.high, random.low[::-1]]).astype(np.float32)
        along = np.concatenate([random.billed, random.billed[::-1]]).astype(np.float32)
        shared = {"legendgroup": "random", "mode": "lines"}
        traces += [
            go.Scatter(
                x=along,
                y=band,
                fill="toself",
                fillcolor=look.faded(look.GREY),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
                **shared,
            ),
            go.Scatter(
                x=random.billed.astype(np.float32),
                y=random.expected.astype(np.float32),
                name="random search, expected (simulated)",
                line={"color": look.GREY, "dash": "dash", "width": 2},
                hovertemplate="%{x:.4~g} worker-seconds: %{y:.5g}<extra></extra>",
                **shared,
            ),
        ]
    traces.append(
        go.Scatter(
            x=curve.billed.astype(np.float32),
            y=curve.best.astype(np.float32),
            name="this job",
            mode="lines+markers",
            line={"color": look.BEST, "width": 3, "shape": "hv"},
            marker={"size": 5},
            hovertemplate="%{x:.4~g} worker-seconds: %{y:.5g}<extra></extra>",
        )
    )
    figure = look.interactive(
        *traces,
        xaxis={"title": {"text": "billed worker-seconds"}, "rangemode": "tozero"},
        yaxis={"title": {"text": look.plain(f"best {look.shortened(data.metric)}")}, "range": drawn.bounds},
    )
    if drawn.untuned is not None:
        label = {"text": f"un-tuned: {look.score(drawn.untuned)}", "font": {"size": 11}, "textposition": "start"}
        figure.add_hline(drawn.untuned, line={"color": look.GREY, "dash": "dot", "width": 1.5}, label=label)
    return figure


def _interactive_compared(curves: Mapping[str, Progress], metric: str) -> go.Figure:
    traces = [
        go.Scatter(
            x=line.billed.astype(np.float32),
            y=line.best.astype(np.float32),
            name=look.plain(name),
            mode="lines+markers",
            line={"color": look.SERIES[place % len(look.SERIES)], "width": 2.5, "shape": "hv"},
            marker={"size": [*[0] * (len(line.billed) - 1), 9]},
            hovertemplate="%{x:.4~g} worker-seconds: %{y:.5g}<extra></extra>",
        )
        for place, (name, line) in enumerate(curves.items())
    ]
    return look.interactive(
        *traces,
        showlegend=True,
        xaxis={"title": {"text": "billed worker-seconds"}, "rangemode": "tozero"},
        yaxis={"title": {"text": look.plain(f"best {metric}")}},
    )


@look.styled
def _still_compared(curves: Mapping[str, Progress], metric: str, title: str) -> Still:
    still, axes = look.canvas(title, f"best {metric} against what was billed")
    for place, (name, line) in enumerate(curves.items()):
        colour = look.SERIES[place % len(look.SERIES)]
        axes.step(line.billed, line.best, where="post", color=colour, lw=2.4, label=name)
        axes.plot(line.billed[-1], line.best[-1], "o", color=colour, ms=7)
    _finish(axes, metric)
    return still


@look.styled
def _still(drawn: _Drawn, title: str) -> Still:
    curve, random, data = drawn.found, drawn.random, drawn.data
    still, axes = look.canvas(title, f"{data.title}: best {look.shortened(data.metric)} against what was billed")
    axes.step(curve.billed, curve.best, where="post", color=look.BEST, lw=2.8, label="this job", zorder=3)
    axes.plot(curve.billed[-1], curve.best[-1], "o", color=look.BEST, ms=7, zorder=3)
    if random is not None:
        axes.fill_between(random.billed, random.low, random.high, color=look.GREY, alpha=0.18, lw=0)
        label = "random search, expected (simulated)"
        axes.plot(random.billed, random.expected, color=look.GREY, linestyle=(0, (4, 2)), lw=2, label=label)
    if drawn.untuned is not None:
        text = f"un-tuned: {look.score(drawn.untuned)}"
        axes.axhline(drawn.untuned, color=look.GREY, linestyle=":", lw=1.5, label=text)
    if drawn.bounds is not None:
        axes.set_ylim(drawn.bounds)
    _finish(axes, look.shortened(data.metric))
    return still


def _finish(axes: Axes, metric: str) -> None:
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("billed worker-seconds")
    axes.set_ylabel(f"best {metric}")
    axes.legend(loc="best")
