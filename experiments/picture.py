"""Draws a job's learning curves from the record: which trials were stopped where.

    python -m experiments.picture JOB -o FILE.png|.svg [--store URL]

A line is a trial, coloured by its bracket; it ends where the trial was stopped, or at the last rung. It needs no Ray,
and works while the job runs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import typer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from hpo.analytics import tuned_trials
from hpo.describe import best_trial, objective
from hpo.store import JobRow, ReportRow, Store, TrialRow
from trainers.errors import WarmbandError

# After the palette of Okabe and Ito, darkened for thin lines on white.
COLOURS = ("#0072b2", "#d1601f", "#00876c", "#a3498f", "#806a00", "#3f4a9c")
INK, PALE = "#333333", "#e4e4e4"
STYLE: Any = {
    **{f"{what}.color": INK for what in ("text", "xtick", "ytick")},
    "axes.labelcolor": INK,
    "axes.edgecolor": "#999999",
    "grid.color": PALE,
    "svg.hashsalt": "the same file every time",
}


def draw(job: JobRow, trials: Sequence[TrialRow], reports: Sequence[ReportRow]) -> Figure:
    """The picture: a line for each of `trials`; one with a negative number is the un-tuned run."""
    curves: dict[str, list[ReportRow]] = defaultdict(list)
    for report in reports:
        curves[report.trial_id].append(report)
    tuned = [trial for trial in trials if trial.number >= 0]
    best = best_trial(job, tuned)
    longest = job.plan["max_resource"]
    # Brackets that cut at the same rungs look alike, however often a plan repeats them.
    cuts = [tuple(bracket["rungs"][:-1]) for bracket in job.plan["brackets"]]
    colours = dict(zip(dict.fromkeys(cuts), COLOURS * len(cuts), strict=False))
    sizes = Counter(cuts[trial.bracket] for trial in tuned if trial.bracket is not None)
    handles = [
        Line2D([], [], color=colours[cut], label=f"{size} trials, " + (f"cut at {listed(cut)}" if cut else "none cut"))
        for cut, size in sizes.items()
    ]
    for text, face in (("stopped there", "white"), (f"trained to {longest}", INK)):
        handles.append(Line2D([], [], color=INK, linestyle="", marker="o", ms=5, markerfacecolor=face, label=text))

    figure = Figure(figsize=(9, 5.2), layout="constrained")
    axes = figure.subplots()
    for trial in trials:
        colour = INK if trial.bracket is None else colours[cuts[trial.bracket]]
        axes.plot(
            [report.step for report in curves[trial.trial_id]],
            [math.nan if report.objective is None else report.objective for report in curves[trial.trial_id]],
            color=colour,
            marker="X" if trial.status == "Failed" else "o",
            markevery=[-1] if curves[trial.trial_id] else None,
            markerfacecolor=colour if trial.status == "Completed" else "white",
            clip_on=False,
            **look(job, trial, best),
        )
    # Rungs are where trials are compared: logarithmic, they are about equally far apart.
    axes.set_xscale("log")
    axes.set_xticks(rungs := sorted({longest}.union(*cuts)), [str(rung) for rung in rungs])
    axes.xaxis.set_minor_locator(NullLocator())
    unit = "boosting rounds" if job.spec["estimator"]["trainer"] == "XGBoostTrainer" else "units"
    axes.set_xlabel(f"{unit} (logarithmic)")
    axes.set_ylabel(job.spec["objective_metric_name"])
    axes.grid()
    axes.spines[["top", "right"]].set_visible(False)
    used, possible = sum(trial.resource for trial in tuned), longest * len(tuned)
    title = f"{job.name}: {len(tuned)} trials used {used} of {possible} possible {unit}"
    axes.set_title(title + (f" ({used / possible:.0%})" if possible else ""), loc="left", weight="bold", pad=10)
    standing_out = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    axes.legend(handles=[*standing_out, *handles], loc="lower right", edgecolor="none", framealpha=1)
    return figure


def listed(rungs: Sequence[int]) -> str:
    return ", ".join(map(str, rungs))


def look(job: JobRow, trial: TrialRow, best: TrialRow | None) -> dict[str, Any]:
    """How a line stands out: the best trial's, and the un-tuned run's."""
    value = objective(job, trial)
    said = "none" if value is None else f"{value:.4f}"
    if trial.number < 0:
        return {"linestyle": (0, (4, 2)), "lw": 1.7, "ms": 0, "zorder": 2, "label": f"un-tuned: {said}"}
    if trial is best:
        return {"lw": 3, "ms": 8, "zorder": 3, "solid_joinstyle": "round", "label": f"the best trial: {said}"}
    return {"lw": 1.3, "ms": 5, "zorder": 2}


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
            rows = opened.job(job), [*tuned_trials(opened, job), *untuned], opened.reports(job)
    except WarmbandError as error:
        raise typer.BadParameter(str(error)) from error
    with mpl.rc_context(STYLE):
        draw(*rows).savefig(out, dpi=200, metadata={"Date": None} if out.suffix == ".svg" else None)
    typer.echo(f"written to {out}")


if __name__ == "__main__":
    typer.run(main)
