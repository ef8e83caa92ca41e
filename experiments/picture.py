"""Draws a job's learning curves from the record: which trials were stopped where.

    python -m experiments.picture JOB -o FILE.png|.svg [--store URL]

A line is a trial, coloured by its bracket; it ends where the trial was stopped, or at the last rung. Needs no Ray, and
works while the job runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import matplotlib as mpl
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from hpo.analytics import tuned_trials
from hpo.describe import best_trial, objective
from hpo.store import JobRow, ReportRow, Store, TrialRow
from trainers.errors import WarmbandError

# Told apart with any colour vision, and dark enough for thin lines on white.
COLOURS = ("#0072b2", "#d1601f", "#00876c", "#a3498f", "#806a00", "#3f4a9c")
INK, PALE = "#333333", "#e4e4e4"
ENDS = {"Completed": "o", "Failed": "X"}
STYLE = {
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": PALE,
    "svg.hashsalt": "warmband",
}


def draw(job: JobRow, trials: Sequence[TrialRow], reports: Sequence[ReportRow]) -> Figure:
    """The picture: a line for each of `trials`, of which one with a negative number is the un-tuned run."""
    curves: dict[str, list[ReportRow]] = defaultdict(list)
    for report in reports:
        curves[report.trial_id].append(report)
    tuned = [trial for trial in trials if trial.number >= 0]
    best = best_trial(job, tuned)
    # Brackets that cut at the same rungs look alike, however often the plan repeats them.
    rungs = [tuple(bracket["rungs"]) for bracket in job.plan["brackets"]]
    colours = dict(zip(dict.fromkeys(rungs), COLOURS * len(rungs), strict=False))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 5.2), layout="constrained")
        axes = figure.subplots()
        for trial in trials:
            colour = INK if trial.bracket is None else colours[rungs[trial.bracket]]
            add_curve(axes, trial, curves[trial.trial_id], colour, stands_out=trial is best)
        set_axes(axes, job, sorted(set().union(*rungs)))
        used, possible = sum(trial.resource for trial in tuned), len(tuned) * job.plan["max_resource"]
        share = f" ({used / possible:.0%})" if possible else ""
        figure.suptitle(
            f"{len(tuned)} trials, {used} of {possible} possible {unit(job)}{share}", x=0.01, ha="left", weight="bold"
        )
        legend = [
            Line2D([], [], color=colour, label=f"{count(tuned, rungs, cut)} trials, {name(cut)}")
            for cut, colour in colours.items()
        ]
        for trial in trials:
            if trial.number < 0 or trial is best:
                value = objective(job, trial)
                label = f"{'best' if trial is best else 'un-tuned'}: {math.nan if value is None else value:.4f}"
                colour = INK if trial.bracket is None else colours[rungs[trial.bracket]]
                legend.append(Line2D([], [], color=colour, **emphasis(trial, trial is best), label=label))
        for label, face in (("stopped there", "white"), (f"trained to {job.plan['max_resource']}", INK)):
            legend.append(
                Line2D([], [], color=INK, linestyle="", marker="o", markersize=5, markerfacecolor=face, label=label)
            )
        axes.legend(handles=legend, loc="lower right", frameon=True, edgecolor="none", framealpha=0.9)
    return figure


def add_curve(axes: Axes, trial: TrialRow, reports: Sequence[ReportRow], colour: str, *, stands_out: bool) -> None:
    """One trial, marked where it ends."""
    ended = trial.status == "Completed"
    axes.plot(
        [report.step for report in reports],
        [math.nan if report.objective is None else report.objective for report in reports],
        color=colour,
        marker=ENDS.get(trial.status, "o"),
        markevery=[-1] if reports else None,
        markersize=7 if stands_out else 5,
        markerfacecolor=colour if ended else "white",
        zorder=4 if stands_out else 3 if trial.number < 0 else 2,
        clip_on=False,
        **emphasis(trial, stands_out),
    )


def emphasis(trial: TrialRow, stands_out: bool) -> dict[str, object]:
    """How a line is told from the others of its colour."""
    if trial.number < 0:
        return {"linestyle": (0, (4, 2)), "linewidth": 1.6}
    return {"linewidth": 3.2 if stands_out else 1.3}


def set_axes(axes: Axes, job: JobRow, rungs: Sequence[int]) -> None:
    """Rungs get equal room and a line each, since they are where trials are compared."""
    axes.set_xscale("log")
    axes.set_xticks(rungs, [str(rung) for rung in rungs])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(f"{unit(job)}, logarithmic")
    axes.set_ylabel(job.spec["objective_metric_name"])
    axes.grid()
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def unit(job: JobRow) -> str:
    return "boosting rounds" if job.spec["estimator"]["trainer"] == "XGBoostTrainer" else "units"


def count(trials: Sequence[TrialRow], rungs: Sequence[tuple[int, ...]], cut: tuple[int, ...]) -> int:
    return sum(trial.bracket is not None and rungs[trial.bracket] == cut for trial in trials)


def name(rungs: tuple[int, ...]) -> str:
    return f"cut at {', '.join(map(str, rungs[:-1]))}" if len(rungs) > 1 else "none cut"


def main(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The tuning job's name.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="What to write, .png or .svg.")],
    store: Annotated[str | None, typer.Option(help="Database URL of the record; else WARMBAND_STORE.")] = None,
) -> None:
    """Draw a job's learning curves: which trials were stopped where."""
    if out.suffix not in (".png", ".svg"):
        raise typer.BadParameter(f"{out} has to end in .png or .svg")
    try:
        with Store(store) as opened:
            untuned = [trial for trial in opened.trials(job) if trial.number < 0]
            figure = draw(opened.job(job), [*untuned, *tuned_trials(opened, job)], opened.reports(job))
    except WarmbandError as error:
        raise typer.BadParameter(str(error)) from error
    with mpl.rc_context(STYLE):
        figure.savefig(out, dpi=200, metadata={"Date": None} if out.suffix == ".svg" else None)
    typer.echo(f"written to {out}")


if __name__ == "__main__":
    typer.run(main)
