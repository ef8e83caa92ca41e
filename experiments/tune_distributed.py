"""What tuning gives back to distributed training, and what early stopping saves: the blog's tuning job and its table.

    python -m experiments.tune_distributed [--model xgboost|image|both] [--seeds N] [--quick] [--repeat 100] [--out DIR]

For each model and seed, on the same workers: a training with the static hyperparameters; 30 configurations, all run to
the end; and the same 30 configurations under Hyperband, from 1 unit on. The configurations and each trial's random
numbers follow from the seed, so that what differs between the two searches is early stopping. Both searches pay for all
they do: their gangs' start, a few units to measure what they cost, and the training without tuning beside them.
What is done is kept in `--out`: a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from experiments.benchmark import table
from experiments.problems import Problem, problems
from experiments.published import (
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
from experiments.searches import Outcome, Searches, rows
from hpo.report import JobData, Page, Section, Table, Text, comparison_figures, job_sections
from hpo.store import Store
from trainers.datasets import Dataset


class Way(StrEnum):
    """The columns of the closing table."""

    UNTUNED = "without tuning"
    TO_THE_END = "tuned, all run to the end"
    HYPERBAND = "tuned by Hyperband"


class Model(StrEnum):
    """What to tune."""

    XGBOOST = "xgboost"
    IMAGE = "image"
    BOTH = "both"


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A row of the closing table.

    Args:
        name: with its unit.
        of: takes it from an outcome.
        digits: behind the point.
        score: whether more is better, and differences are told as they are; else ratios are.
    """

    name: str
    of: Callable[[Outcome], float]
    digits: int
    score: bool = False


def quantities(problem: Problem) -> list[Quantity]:
    """The rows of the closing table: quality, cost, and operational efficiency."""
    return [
        Quantity(name=problem.objective, of=lambda outcome: outcome.validation, digits=4, score=True),
        Quantity(name=problem.test, of=lambda outcome: outcome.test, digits=4, score=True),
        Quantity(name="billed worker-minutes", of=lambda outcome: outcome.worker_seconds / 60, digits=2),
        Quantity(name="wall minutes", of=lambda outcome: outcome.seconds / 60, digits=2),
        Quantity(name="units trained", of=lambda outcome: outcome.units, digits=0),
    ]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one model came to: for each way, an outcome a seed.

    Args:
        problem: the model.
        rows: to train on.
        outcomes: by way, in the order of the seeds.
    """

    problem: Problem
    rows: int
    outcomes: Mapping[Way, Sequence[Outcome]]

    def mean(self, way: Way, of: Callable[[Outcome], float]) -> float:
        """Over the seeds."""
        return statistics.fmean(of(outcome) for outcome in self.outcomes[way])

    def error(self, way: Way) -> float:
        """The standard error of one validation score, from its rows."""
        known = [each.standard_error for each in self.outcomes[way] if each.standard_error is not None]
        return statistics.fmean(known) if known else math.nan


def run(problem: Problem, dataset: Dataset, options: Options, searches: Searches) -> Found:
    """Everything for one model."""
    outcomes: dict[Way, list[Outcome]] = {way: [] for way in Way}
    trainer = problem.trainer(problem.workers, problem.units)
    for seed in options.each_seed:
        name = f"{problem.name}-{seed}"
        outcomes[Way.UNTUNED].append(searches.train(f"{name}-untuned", problem, dataset, trainer=trainer, seed=seed))
        for way, least in ((Way.TO_THE_END, problem.max_resource), (Way.HYPERBAND, 1)):
            step = f"{name}-{'hyperband' if way is Way.HYPERBAND else 'to-the-end'}"
            outcomes[way].append(
                searches.search(step, problem, dataset, trainer=trainer, min_resource=least, seed=seed)
            )
    return Found(problem=problem, rows=rows(dataset), outcomes=outcomes)


# ---- what came out


def closing(found: Found) -> list[tuple[str, ...]]:
    """The rows of the closing table, as text: means over the seeds, with their spread, and Hyperband's improvement."""
    made = []
    for quantity in quantities(found.problem):
        cells = [quantity.name]
        means = {}
        for way in Way:
            values = [quantity.of(outcome) for outcome in found.outcomes[way]]
            means[way] = statistics.fmean(values)
            spread = f" ± {statistics.stdev(values):.{quantity.digits}f}" if len(values) > 1 else ""
            cells.append(f"{means[way]:.{quantity.digits}f}{spread}")
        for other in (Way.UNTUNED, Way.TO_THE_END):
            cells.append(improvement(means[Way.HYPERBAND], means[other], score=quantity.score))
        made.append((*cells, "not at hand"))
    return made


def improvement(value: float, against: float, *, score: bool) -> str:
    """How a value compares: the difference of scores, or the ratio of what is spent."""
    if score:
        return f"{value - against:+.4f}"
    return f"{value / against:.2f} times" if against > 0 else ""


def verdict(found: Found) -> str:
    """What tuning gave and what early stopping saved, in two sentences."""
    problem = found.problem
    scores = {way: found.mean(way, lambda outcome: outcome.validation) for way in Way}
    spent = {way: found.mean(way, lambda outcome: outcome.worker_seconds) for way in Way}
    gained, error = scores[Way.HYPERBAND] - scores[Way.UNTUNED], found.error(Way.HYPERBAND)
    less = scores[Way.HYPERBAND] - scores[Way.TO_THE_END]
    noise = "" if not abs(gained) < error else ", which is more"
    known = f"; one such score has a standard error of {error:.4f}{noise}" if math.isfinite(error) else ""
    seeds = len(found.outcomes[Way.HYPERBAND])
    of_seeds = f" (means of {seeds} seeds)" if seeds > 1 else ""
    share = spent[Way.HYPERBAND] / spent[Way.TO_THE_END]
    return (
        f"{problem.title} on {problem.workers} workers{of_seeds}: {scores[Way.UNTUNED]:.4f} without tuning, "
        f"{scores[Way.HYPERBAND]:.4f} tuned by Hyperband ({gained:+.4f}{known}). Hyperband billed {share:.0%} of what "
        f"the same {problem.jobs} configurations took when all ran to the end, and its best is {less:+.4f} from theirs."
    )


COLUMNS = ("", *(str(way) for way in Way), "against without tuning", "against run to the end", "the blog's")
BLOG = (
    "The blog's own closing figures are not at hand, and nothing is quoted from memory; its setting is seven ranges, "
    "30 jobs, 4 in parallel, Hyperband from 1 to 30, 3 instances."
)


def page(founds: Sequence[Found], searches: Searches, options: Options) -> Page:
    """The page: verdicts and closing tables first, then each model's Hyperband job of the first seed."""
    sections = []
    for found in founds:
        problem = found.problem
        with Store(searches.store) as store:
            first = {way: JobData.read(store, found.outcomes[way][0].job) for way in (Way.HYPERBAND, Way.TO_THE_END)}
        caption = (
            f"{found.rows:,} rows to train on, {problem.workers} workers, {problem.jobs} configurations of at most "
            f"{problem.max_resource} units; without tuning {problem.units} units. {BLOG}"
        )
        figures = comparison_figures([first[Way.HYPERBAND], first[Way.TO_THE_END]])
        said = [Text(verdict(found))] if len(founds) > 1 else []
        sections.append(Section(problem.title, [*said, Table(COLUMNS, closing(found), caption=caption), *figures]))
    for found in founds:
        with Store(searches.store) as store:
            data = JobData.read(store, found.outcomes[Way.HYPERBAND][0].job)
        whose = f"{found.problem.name}, Hyperband" if len(founds) > 1 else "Hyperband"
        sections += titled(job_sections(data), whose)
    return Page("Tuning distributed training", " ".join(map(verdict, founds)), sections)


def result(founds: Sequence[Found]) -> dict[str, object]:
    """Everything measured, for result.json."""
    return {
        "models": {
            found.problem.name: {
                "rows": found.rows,
                "workers": found.problem.workers,
                "verdict": verdict(found),
                "outcomes": {way: [asdict(outcome) for outcome in found.outcomes[way]] for way in Way},
            }
            for found in founds
        }
    }


def main(
    model: Annotated[Model, typer.Option(help="What to tune.")] = Model.BOTH,
    quick: Quick = False,
    data_dir: DataDir = None,
    seed: Seed = SEED,
    seeds: Seeds = 1,
    repeat: Repeat = 1,
    out: Out = Path("results/tune_distributed"),
    address: Address = None,
) -> None:
    """Tune distributed training, with and without early stopping, and compare it with no tuning at all."""
    console = Console(highlight=False)
    options = Options(quick=quick, data_dir=data_dir, seed=seed, seeds=seeds, repeat=repeat, out=out, address=address)
    chosen = [problem for name, problem in problems(options).items() if model in (name, Model.BOTH)]
    say = console.print
    with Steps(out, say) as steps:
        searches = Searches(steps=steps, folder=out, console=console)
        room = max(problem.workers * problem.parallel for problem in chosen)
        with options.cluster(room, steps, say):
            founds = [run(problem, problem.load(options), options, searches) for problem in chosen]
        for found in founds:
            console.print(table(found.problem.title, COLUMNS, closing(found)), "", verdict(found), "", soft_wrap=True)
        finish(options, result(founds), page(founds, searches, options), console)


if __name__ == "__main__":
    typer.run(main)
