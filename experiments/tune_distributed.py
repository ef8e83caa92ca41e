"""Tuning of distributed training, with and without early stopping: the blog's tuning job and its table.

    python -m experiments.tune_distributed [--model xgboost|image|both] [--seeds N] [--quick] [--repeat 100] [--out DIR]

For each model and seed, on the same workers: a training with the static hyperparameters; 30 configurations, all run to
the end; the same 30 configurations under Hyperband, from 1 unit on; and plain random search for as many units as
Hyperband used: the first few of the same configurations, run to the end. Configurations and each trial's random numbers
follow from the seed, so that what differs between the searches is early stopping. All searches pay for all they do:
their gangs' start, a few units to measure what they cost, and the training without tuning beside them.
A quick run does not train those first few configurations again: it reads them, and the part of the bill that is theirs,
from the record of the search that ran all of them to the end, one at a time.
What is done is kept in `--out`: a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from experiments.shared import blog
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
from experiments.shared.scores import Scores, configurations, difference, told, unbeaten
from experiments.shared.searches import Outcome, Searches, rows
from hpo.cli import errors_in_words
from hpo.record import Store
from hpo.report import JobData, Page, Section, Table, Text, comparison_figures, job_sections
from trainers.datasets import Dataset


class Way(StrEnum):
    """The columns of the closing table."""

    UNTUNED = "without tuning"
    TO_THE_END = "all to the end"
    EQUAL = "random, as many units"
    HYPERBAND = "Hyperband"


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
        score: whether it is a score, of which more is better: differences are told as they are; else ratios are.
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
        Quantity(name="configurations", of=lambda outcome: max(1, sum(outcome.trials.values())), digits=0),
        Quantity(name="units trained", of=lambda outcome: outcome.units, digits=0),
        Quantity(name="billed worker-minutes", of=lambda outcome: outcome.worker_seconds / 60, digits=2),
        Quantity(name="of these, training", of=lambda outcome: outcome.training / 60, digits=2),
        Quantity(name="gangs", of=lambda outcome: outcome.gangs, digits=1),
        Quantity(name="wall minutes", of=lambda outcome: outcome.seconds / 60, digits=2),
    ]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one model came to: for each way, an outcome a seed.

    Args:
        problem: the model.
        rows: to train on.
        synthetic: whether they are generated.
        outcomes: by way, in the order of the seeds.
    """

    problem: Problem
    rows: int
    synthetic: bool
    outcomes: Mapping[Way, Sequence[Outcome]]

    def values(self, way: Way, of: Callable[[Outcome], float]) -> list[float]:
        """A seed each."""
        return [of(outcome) for outcome in self.outcomes[way]]

    def mean(self, way: Way, of: Callable[[Outcome], float]) -> float:
        """Over the seeds."""
        return statistics.fmean(self.values(way, of))

    def share(self, of: Callable[[Outcome], float]) -> str:
        """What Hyperband took, of what the same configurations took when all ran to the end: by seed, least to most."""
        pairs = zip(self.values(Way.HYPERBAND, of), self.values(Way.TO_THE_END, of), strict=True)
        shares = [f"{mine / its:.0%}" for mine, its in sorted(pairs, key=lambda pair: pair[0] / pair[1])]
        return shares[0] if shares[0] == shares[-1] else f"{shares[0]} to {shares[-1]}"

    @property
    def error(self) -> float | None:
        """The standard error of one of Hyperband's validation scores, from its rows; None where it is not known."""
        known = [each.standard_error for each in self.outcomes[Way.HYPERBAND] if each.standard_error is not None]
        return statistics.fmean(known) if known else None

    @property
    def equal_is_read(self) -> bool:
        """Whether the search for as many units is read from the record of that which ran all to the end."""
        return self.outcomes[Way.EQUAL][0].job == self.outcomes[Way.TO_THE_END][0].job

    def ahead(self, way: Way, of: Callable[[Outcome], float], error: float | None = None) -> Scores:
        """Hyperband's scores minus another way's, a pair a seed; the error is that of one score, where it is known."""
        return difference(self.values(Way.HYPERBAND, of), self.values(way, of), error)


def run(problem: Problem, dataset: Dataset, options: Options, searches: Searches) -> Found:
    """Everything for one model."""
    outcomes: dict[Way, list[Outcome]] = {way: [] for way in Way}
    trainer = problem.trainer(problem.workers, problem.units)
    for seed in options.each_seed:
        name = f"{problem.name}-{seed}"

        def search(step: str, least: int, jobs: int, name: str = name, seed: int = seed) -> Outcome:
            some = replace(problem, jobs=jobs)
            return searches.search(f"{name}-{step}", some, dataset, trainer=trainer, min_resource=least, seed=seed)

        searches.console.print(f"{problem.title}: training without tuning, on {problem.workers} workers")
        outcomes[Way.UNTUNED].append(searches.train(f"{name}-untuned", problem, dataset, trainer=trainer, seed=seed))
        outcomes[Way.TO_THE_END].append(full := search("to-the-end", problem.max_resource, problem.jobs))
        outcomes[Way.HYPERBAND].append(cut := search("hyperband", 1, problem.jobs))
        enough = configurations(cut.units, problem.max_resource)
        if options.quick:
            equal = searches.first(full, enough, problem, dataset)
            searches.console.print(f"Random, as many units: the first {enough} trials of {full.job}, not trained again")
        else:
            equal = search("as-many", problem.max_resource, enough)
        outcomes[Way.EQUAL].append(equal)
    return Found(problem=problem, rows=rows(dataset), synthetic=dataset.synthetic, outcomes=outcomes)


# ---- what came out


def closing(found: Found) -> list[tuple[str, ...]]:
    """The rows of the closing table, as text: means over the seeds, with their spread."""
    made = []
    for quantity in quantities(found.problem):
        cells = []
        for way in Way:
            values = found.values(way, quantity.of)
            spread = f" ± {statistics.stdev(values):.{quantity.digits}f}" if len({*values}) > 1 else ""
            cells.append(f"{statistics.fmean(values):.{quantity.digits}f}{spread}")
        made.append((quantity.name, *cells))
    return made


def against(found: Found) -> list[tuple[str, ...]]:
    """The rows of Hyperband's comparison with the other ways, as text: differences of scores, ratios of the rest."""
    made = []
    for way in (Way.UNTUNED, Way.TO_THE_END, Way.EQUAL):
        cells = []
        for quantity in compared(found.problem):
            mine, its = (found.mean(each, quantity.of) for each in (Way.HYPERBAND, way))
            ratio = f"{mine / its:.2f} times" if its > 0 else ""
            # The rows' error is that of validation; the test rows are others, and more.
            error = found.error if quantity.name == found.problem.objective else None
            cells.append(told(found.ahead(way, quantity.of, error)) if quantity.score else ratio)
        made.append((str(way), *cells))
    return made


def compared(problem: Problem) -> list[Quantity]:
    """The quantities in which Hyperband is compared with the other ways."""
    return [quantity for quantity in quantities(problem) if quantity.name not in ("configurations", "gangs")]


def headline(found: Found) -> str:
    """The four scores."""
    scores = {way: f"{found.mean(way, lambda outcome: outcome.validation):.4f}" for way in Way}
    return (
        f"{found.problem.title}: {found.problem.objective} {scores[Way.UNTUNED]} without tuning, "
        f"{scores[Way.HYPERBAND]} tuned by Hyperband, {scores[Way.EQUAL]} by random search for as many units, "
        f"{scores[Way.TO_THE_END]} by all configurations run to the end."
    )


def verdict(found: Found) -> str:
    """What tuning gave, what early stopping saved, and what as many units find without it."""
    problem, unit = found.problem, f"{found.problem.trainer(1, 1).unit}s"

    def score(outcome: Outcome) -> float:
        return outcome.validation

    def ahead(way: Way) -> str:
        return told(found.ahead(way, score, found.error))

    scores = {way: found.mean(way, score) for way in Way}
    gangs = {way: found.mean(way, lambda outcome: outcome.gangs) for way in Way}
    seeds = len(found.outcomes[Way.HYPERBAND])
    of_seeds = f" (means of {seeds} seeds)" if seeds > 1 else ""
    equal = found.ahead(Way.EQUAL, score, found.error)
    read = (
        " (read from the record of the search that ran all of them, not trained again, and billed as that search is "
        "without its other trials)"
        if found.equal_is_read
        else ""
    )
    billed = found.share(lambda outcome: outcome.worker_seconds)
    trained = found.share(lambda outcome: outcome.training)
    return (
        f"{problem.title} on {problem.workers} workers{of_seeds}: {problem.objective} {scores[Way.UNTUNED]:.4f} "
        f"without tuning, {scores[Way.HYPERBAND]:.4f} tuned by Hyperband: {ahead(Way.UNTUNED)}. Hyperband trained "
        f"{found.share(lambda outcome: outcome.units)} of the {unit} that the same {problem.jobs} configurations "
        f"train when all run to the end. It billed {billed} of their worker-seconds, {trained} of those in "
        f"which workers trained (gangs: {gangs[Way.HYPERBAND]:.2g} for {gangs[Way.TO_THE_END]:.2g}). Its best against "
        f"theirs: {ahead(Way.TO_THE_END)}. Plain random search for as many {unit}, the first of these configurations "
        f"run to the end{read}, found {scores[Way.EQUAL]:.4f}; Hyperband against that: {told(equal)}"
        f"{f': at equal {unit}, it does not beat random search here' if unbeaten(equal) else ''}."
    )


COLUMNS = ("", *(str(way) for way in Way))


def beside_the_blog(found: Found) -> list[tuple[str, ...]]:
    """The blog's closing table with ours: text."""
    naive = {blog.QUALITY: Way.UNTUNED, blog.COST: Way.TO_THE_END, blog.TIME: Way.TO_THE_END}
    of: dict[blog.Compared, Callable[[Outcome], float]] = {
        blog.QUALITY: lambda outcome: outcome.validation,
        blog.COST: lambda outcome: outcome.worker_seconds / 60,
        blog.TIME: lambda outcome: outcome.seconds / 60,
    }
    made: list[tuple[str, ...]] = []
    for row, way in naive.items():
        its, mine = (found.mean(each, of[row]) for each in (way, Way.HYPERBAND))
        gain = f"{mine - its:+.4f}" if row is blog.QUALITY else f"{1 - mine / its:.0%}"
        digits = 4 if row is blog.QUALITY else 2
        ours = (f"{its:.{digits}f} ({way})", f"{mine:.{digits}f}", gain)
        made.append((row.quantity, f"{row.naive:g}", f"{row.hyperband:g}", row.gain, *ours))
    return made


BLOG_COLUMNS = ("", *("the blog's: naive", "Hyperband", "gain"), *("here: naive", "Hyperband", "gain"))


def reproduced(found: Found) -> str:
    """What of the blog's scores comes out here, and why its other figures do not compare."""
    error = found.error or 0.0
    said = []
    for way, score in ((Way.UNTUNED, blog.QUALITY.naive), (Way.HYPERBAND, blog.QUALITY.hyperband)):
        ours = found.mean(way, lambda outcome: outcome.validation)
        which = "without tuning" if way is Way.UNTUNED else "tuned"
        comes = "comes out" if abs(ours - score) <= 2 * error else "does not come out"
        here = "has nothing to stand beside here" if math.isnan(ours) else f"{comes} ({ours:.4f} here)"
        said.append(f"its {score} {which} {here}")
    on = ", on generated rows" if found.synthetic else ""
    return (
        f"The blog's figures: {blog.SOURCE}. One AUC has a standard error of {error:.4f}{on}; within two of these, "
        f"{' and '.join(said)}. {blog.QUALITY_ASIDE} {blog.SLIPS} Its minutes are of "
        f"{blog.FIRST['xgboost-1'].instance} instances, and ours of the machine that ran this: "
        "compare the gains, not the minutes."
    )


def page(founds: Sequence[Found], searches: Searches) -> Page:
    """The page: scores, verdicts and closing tables first, then each model's Hyperband job of the first seed."""
    sections = []
    for found in founds:
        problem = found.problem
        with Store(searches.store) as store:
            first = [JobData.read(store, found.outcomes[way][0].job) for way in (Way.HYPERBAND, Way.TO_THE_END)]
        caption = (
            f"{found.rows:,} rows to train on, {problem.workers} workers, {problem.jobs} configurations of at most "
            f"{problem.max_resource} units; without tuning {problem.units} units."
        )
        tables = [Table(COLUMNS, closing(found), caption=caption), Table(_against_columns(problem), against(found))]
        if problem.name == Model.XGBOOST:
            tables.append(Table(BLOG_COLUMNS, beside_the_blog(found), caption=reproduced(found)))
        sections.append(Section(problem.title, [Text(verdict(found)), *tables, *comparison_figures(first)]))
    for found in founds:
        with Store(searches.store) as store:
            data = JobData.read(store, found.outcomes[Way.HYPERBAND][0].job)
        whose = f"{found.problem.name}, Hyperband" if len(founds) > 1 else "Hyperband"
        sections += titled(job_sections(data), whose)
    return Page("Tuning distributed training", " ".join(map(headline, founds)), sections)


def _against_columns(problem: Problem) -> tuple[str, ...]:
    first, *others = (quantity.name for quantity in compared(problem))
    return ("Hyperband against", first, *others)


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, by name, from result.json: of each model that it holds."""
    options = Options(quick=result["options"]["quick"], out=Path(result["options"]["out"]))
    made = {}
    for name, kept in result["models"].items():
        outcomes = {way: [Outcome.read(each) for each in kept["outcomes"][way]] for way in Way}
        found = Found(
            problem=problems(options)[name], rows=kept["rows"], synthetic=kept["synthetic"], outcomes=outcomes
        )
        made[f"{name}-verdict"] = verdict(found)
        made[f"{name}-ways"] = markdown(COLUMNS, closing(found))
        made[f"{name}-against"] = markdown(_against_columns(found.problem), against(found))
        if name == Model.XGBOOST:
            made[f"{name}-reproduced"] = reproduced(found)
            made[f"{name}-blog"] = markdown(BLOG_COLUMNS, beside_the_blog(found))
    return made


def result(founds: Sequence[Found]) -> dict[str, object]:
    """Everything measured, for result.json."""
    return {
        "models": {
            found.problem.name: {
                "rows": found.rows,
                "synthetic": found.synthetic,
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
            console.print(table(found.problem.title, COLUMNS, closing(found)), f"\n{verdict(found)}\n", sep="\n")
        finish(options, result(founds), page(founds, searches), console)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
