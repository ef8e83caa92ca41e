"""The best cluster size: a search on each size, and one search that tunes the size with everything else.

    python -m experiments.cluster_size [--model xgboost|image] [--sizes 1,2,3] [--deadline S] [--budget WORKER_SECONDS]

The blog's notebook runs one search for each cluster size. So does this, with the same configurations in each, since
they follow from the seed; and then one search in which `num_workers` is a range like any other. Each search runs one
trial at a time, so that its wall time is that of its workers. Score, wall time and cost are set against each other:
which searches no other beats, and which size to take for a deadline or a budget. Two scores that differ by less than
one standard error count as equal, and the cheaper is taken.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import plotly.graph_objects as go
import typer
from matplotlib.figure import Figure as Still
from rich.console import Console

from experiments.shared.benchmark import markdown, table
from experiments.shared.problems import Problem, problems
from experiments.shared.published import (
    SEED,
    Address,
    DataDir,
    Options,
    Out,
    Quick,
    Repeat,
    Seed,
    Seeds,
    Steps,
    finish,
    titled,
)
from experiments.shared.searches import Outcome, Searches, rows
from experiments.shared.tradeoff import Advice, Choice, by_budget, by_deadline, front, take
from hpo import CategoricalParameter
from hpo.cli import errors_in_words
from hpo.record import Store
from hpo.report import Column, Figure, JobData, Measured, Page, Section, Table, Text, job_sections, look, with_error
from trainers.datasets import Dataset


class Model(StrEnum):
    """What to tune."""

    XGBOOST = "xgboost"
    IMAGE = "image"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the searches came to, an outcome a seed.

    Args:
        problem: the model.
        rows: to train on.
        by_size: the searches of one size each, by workers.
        tuned: the searches that tuned the size.
    """

    problem: Problem
    rows: int
    by_size: dict[int, list[Outcome]]
    tuned: list[Outcome]

    @property
    def choices(self) -> list[Choice]:
        """Each size's search, in the mean over seeds."""
        return [_choice(_workers(size), size, outcomes) for size, outcomes in self.by_size.items()]

    @property
    def tuned_choice(self) -> Choice:
        """The search that tuned the size; its workers are those of its first seed's best."""
        return _choice("size tuned too", int(self.tuned[0].best["num_workers"]), self.tuned)


def run(problem: Problem, dataset: Dataset, sizes: Sequence[int], options: Options, searches: Searches) -> Found:
    """Every search."""
    by_size: dict[int, list[Outcome]] = {size: [] for size in sizes}
    tuned = []
    size_too = {**problem.ranges, "num_workers": CategoricalParameter([*sizes])}
    for seed in options.each_seed:
        for size in sizes:
            trainer = problem.trainer(size, problem.units)
            name = f"{problem.name}-{seed}-{size}w"
            by_size[size].append(
                searches.search(name, problem, dataset, trainer=trainer, min_resource=1, seed=seed, parallel=1)
            )
        tuned.append(
            searches.search(
                f"{problem.name}-{seed}-sizes",
                problem,
                dataset,
                trainer=problem.trainer(max(sizes), problem.units),
                min_resource=1,
                seed=seed,
                ranges=size_too,
                parallel=1,
            )
        )
    return Found(problem=problem, rows=rows(dataset), by_size=by_size, tuned=tuned)


def _choice(name: str, workers: int, outcomes: Sequence[Outcome]) -> Choice:
    errors = [outcome.standard_error for outcome in outcomes if outcome.standard_error is not None]
    return Choice(
        name=name,
        workers=workers,
        score=statistics.fmean(outcome.validation for outcome in outcomes),
        error=statistics.fmean(errors) if errors else math.nan,
        seconds=statistics.fmean(outcome.seconds for outcome in outcomes),
        worker_seconds=statistics.fmean(outcome.worker_seconds for outcome in outcomes),
    )


def _workers(count: int) -> str:
    return f"{count} worker{'' if count == 1 else 's'}"


# ---- what came out


def verdict(found: Found, deadline: float, budget: float) -> str:
    """The size to take, in a sentence or two."""
    choices = found.choices
    taken = take(choices, deadline=deadline, budget=budget)
    limits = [f"{deadline:g} s" for _ in [0] if math.isfinite(deadline)]
    limits += [f"{budget:g} worker-seconds" for _ in [0] if math.isfinite(budget)]
    within = f" within {' and '.join(limits)}" if limits else ""
    title = found.problem.title
    if taken is None:
        quickest = min(choices, key=lambda choice: choice.seconds)
        cheapest = min(choices, key=lambda choice: choice.worker_seconds)
        return (
            f"{title}: no size keeps{within}. The quickest search took {quickest.seconds:.0f} s on {quickest.name}, "
            f"the cheapest {cheapest.worker_seconds:.0f} worker-seconds on {cheapest.name}."
        )
    best = max(choices, key=lambda choice: choice.score)
    beside = "" if best is taken else f" ({best.name}: {best.score:.4f}, which is within the noise)"
    if best is not taken and (best.seconds > deadline or best.worker_seconds > budget):
        beside = f" ({best.name} would reach {best.score:.4f})"
    tuned = found.tuned_choice
    return (
        f"{title}: take {taken.name}{within}: {taken.score:.4f}{beside} for {taken.worker_seconds:.0f} worker-seconds "
        f"in {taken.seconds:.0f} s. The one search that tuned the size as well chose {_workers(tuned.workers)} and "
        f"reached {tuned.score:.4f} for {tuned.worker_seconds:.0f} worker-seconds in {tuned.seconds:.0f} s."
    )


def searches_table(found: Found) -> Table:
    """Every search: score, test score, wall time and cost, and whether another beats it."""
    choices = [*found.choices, found.tuned_choice]
    unbeaten = front(choices)
    outcomes = [*found.by_size.values(), found.tuned]
    columns: list[Column | str] = [
        "search",
        Column(found.problem.objective, digits=4),
        Column(found.problem.test, digits=4),
        Column("wall seconds", digits=1),
        Column("worker-seconds", digits=1),
        "on the front",
    ]
    made = [
        (
            choice.name,
            Measured(choice.score, _known(choice.error)),
            statistics.fmean(outcome.test for outcome in each),
            choice.seconds,
            choice.worker_seconds,
            "yes" if choice in unbeaten else "no",
        )
        for choice, each in zip(choices, outcomes, strict=True)
    ]
    seeds = len(found.tuned)
    return Table(
        columns,
        made,
        caption=f"{found.rows:,} rows to train on; {found.problem.jobs} configurations of at most "
        f"{found.problem.max_resource} units, one at a time; {'means of ' if seeds > 1 else ''}{seeds} "
        f"seed{'' if seeds == 1 else 's'}. On the front: no other search is as good in score, wall time and cost.",
    )


def advice_table(advice: Sequence[Advice], limit: str) -> Table:
    """From which limit on to take what."""
    columns: list[Column | str] = [Column(f"from a {limit} of", digits=0), "take", Column("score", digits=4)]
    return Table(columns, [(each.limit, each.choice.name, each.choice.score) for each in advice])


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def picture(found: Found) -> Figure:
    """Score against cost, wall time beside each point, the front joined."""
    choices = [*found.choices, found.tuned_choice]
    return Figure(
        name="cluster-size",
        title="What each cluster size gives for what it costs",
        note="A point is a whole search. Those that no other search beats in score, wall time and cost are filled; "
        "bars are one standard error of a score. Wall seconds stand beside the points.",
        interactive=_interactive(choices, found.problem.objective),
        still=partial(_still, choices, found.problem.objective, found.problem.title),
    )


def _interactive(choices: Sequence[Choice], metric: str) -> go.Figure:
    unbeaten = front(choices)
    traces = []
    for name, chosen, symbol in (("on the front", True, "circle"), ("beaten", False, "circle-open")):
        shown = [choice for choice in choices if (choice in unbeaten) is chosen]
        if shown:
            traces.append(
                go.Scatter(
                    x=[choice.worker_seconds for choice in shown],
                    y=[choice.score for choice in shown],
                    error_y={"array": [_known(choice.error) or 0.0 for choice in shown], "color": look.GREY},
                    text=[f"{choice.name}, {choice.seconds:.0f} s" for choice in shown],
                    mode="markers+text",
                    textposition="top right",
                    cliponaxis=False,
                    name=name,
                    marker={"size": 11, "symbol": symbol, "color": look.BLUE, "line": {"width": 2}},
                    hovertemplate="%{text}<br>%{x:.0f} worker-seconds: %{y:.4f}<extra></extra>",
                )
            )
    most = max(choice.worker_seconds for choice in choices)
    # Room for the text beside the last point.
    xaxis = {"title": {"text": "billed worker-seconds of the search"}, "range": [0, 1.3 * most]}
    return look.interactive(*traces, xaxis=xaxis, yaxis={"title": {"text": look.plain(metric)}})


@look.styled
def _still(choices: Sequence[Choice], metric: str, title: str) -> Still:
    still, axes = look.canvas("What each cluster size gives for what it costs", f"{title}: a point is a whole search")
    unbeaten = front(choices)
    for choice in choices:
        axes.errorbar(
            [choice.worker_seconds],
            [choice.score],
            yerr=[_known(choice.error) or 0.0],
            color=look.BLUE,
            ecolor=look.GREY,
            marker="o",
            ms=8,
            markerfacecolor=look.BLUE if choice in unbeaten else "white",
        )
        axes.annotate(
            f"{choice.name}, {choice.seconds:.0f} s",
            (choice.worker_seconds, choice.score),
            textcoords="offset points",
            xytext=(7, 7),
        )
    axes.set_xlim(0, 1.2 * max(choice.worker_seconds for choice in choices))
    axes.set_xlabel("billed worker-seconds of the search")
    axes.set_ylabel(metric)
    return still


def page(found: Found, searches: Searches, deadline: float, budget: float) -> Page:
    """The verdict, the searches against each other, what to take, and the search that tuned the size."""
    with Store(searches.store) as store:
        data = JobData.read(store, found.tuned[0].job)
    sections = [
        Section("Sizes against each other", [searches_table(found), picture(found)]),
        Section(
            "What to take",
            [
                Text("Scores within one standard error of the best within a limit count as equal; then cost decides."),
                advice_table(by_deadline(found.choices), "deadline (seconds)"),
                advice_table(by_budget(found.choices), "budget (worker-seconds)"),
            ],
        ),
        *titled(job_sections(data), "Size tuned too"),
    ]
    return Page("How large a cluster to take", verdict(found, deadline, budget), sections)


def result(found: Found, deadline: float, budget: float) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "model": found.problem.name,
        "rows": found.rows,
        "verdict": verdict(found, deadline, budget),
        "by_size": {size: [asdict(outcome) for outcome in outcomes] for size, outcomes in found.by_size.items()},
        "size_tuned": [asdict(outcome) for outcome in found.tuned],
        "front": [choice.name for choice in front([*found.choices, found.tuned_choice])],
        "by_deadline": [asdict(advice) for advice in by_deadline(found.choices)],
        "by_budget": [asdict(advice) for advice in by_budget(found.choices)],
    }


COLUMNS = ("search", "score", "on test rows", "wall seconds", "worker-seconds", "workers of its best", "on the front")


def cells(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The rows of the searches' table, as text, from what result.json holds."""
    searches = {_workers(int(size)): outcomes for size, outcomes in result["by_size"].items()}
    made: list[tuple[str, ...]] = []
    for name, kept in {**searches, "size tuned too": result["size_tuned"]}.items():
        outcomes = [Outcome.read(each) for each in kept]
        choice = _choice(name, 1, outcomes)
        made.append(
            (
                name,
                with_error(choice.score, _known(choice.error), 4),
                f"{statistics.fmean(outcome.test for outcome in outcomes):.4f}",
                f"{choice.seconds:.1f}",
                f"{choice.worker_seconds:.1f}",
                ", ".join(str(outcome.best.get("num_workers", "")) for outcome in outcomes).strip(", "),
                "yes" if name in result["front"] else "no",
            )
        )
    return made


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, by name, from result.json."""
    made = {"verdict": result["verdict"], "searches": markdown(COLUMNS, cells(result))}
    for name, limit in (("by_deadline", "deadline, seconds"), ("by_budget", "budget, worker-seconds")):
        rows = [
            (f"{advice['limit']:.1f}", advice["choice"]["name"], f"{advice['choice']['score']:.4f}")
            for advice in result[name]
        ]
        made[name] = markdown((f"from this {limit}", "take", "score"), rows)
    return made


def parsed(text: str) -> list[int]:
    """Sizes as they are given, rising; BadParameter where they are none."""
    try:
        sizes = sorted({int(size) for size in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise typer.BadParameter(f"{text!r}: give whole numbers of 1 or more, such as 1,2,4")
    return sizes


def main(
    model: Annotated[Model, typer.Option(help="What to tune.")] = Model.XGBOOST,
    sizes: Annotated[str, typer.Option(metavar="N,N", help="Workers of a gang, to be compared.")] = "1,2,3",
    deadline: Annotated[float, typer.Option(help="Seconds that a search may take.")] = math.inf,
    budget: Annotated[float, typer.Option(help="Worker-seconds that a search may bill.")] = math.inf,
    quick: Quick = False,
    data_dir: DataDir = None,
    seed: Seed = SEED,
    seeds: Seeds = 1,
    repeat: Repeat = 1,
    out: Out = Path("results/cluster_size"),
    address: Address = None,
) -> None:
    """Search on each cluster size, and once with the size tuned too; say which size to take."""
    console = Console(highlight=False)
    options = Options(quick=quick, data_dir=data_dir, seed=seed, seeds=seeds, repeat=repeat, out=out, address=address)
    problem, compared = problems(options)[model], parsed(sizes)
    with Steps(out, console.print) as steps:
        searches = Searches(steps=steps, folder=out, console=console)
        # Room for one more of the largest, so that a gang of another size need not make way.
        with options.cluster(2 * max(compared), steps, console.print):
            found = run(problem, problem.load(options), compared, options, searches)
        whole = result(found, deadline, budget)
        console.print(table(problem.title, COLUMNS, cells(whole)), f"\n{whole['verdict']}\n", sep="\n")
        finish(options, whole, page(found, searches, deadline, budget), console)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
