"""A search with a model in a small job, in a very large one, and beside one that reads whatever has come.

    python -m experiments.search_sizes [--bench FOLDER] [--seeds 12] [--trials 10000] [--part large]

Three questions on simulated gangs. With 30 trials, does Hyperband with a model find more than 30 random trials that run
to the end, and for how many of their epochs? What does one answer a seed cost, against suggestions that read every
result there is when they are asked for? And do suggestions hold 16 gangs up in a job of 10,000 trials of a second?

In the last one, the processor time that each suggestion takes is measured and added to the simulated clock: a
suggestion begins once what it reads is there and the one before it is done, and a gang that asks for it sooner waits,
and with it the loop that serves the others. The other two do not count it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.shared.free_search import FreeHyperband, TimedSearch, WaitingGangs
from experiments.shared.published import Steps
from experiments.shared.recorded_tasks import bench, recorded_task, task_names
from experiments.workloads.empty_searches import NoRecord
from hpo import ContinuousParameter
from hpo.cli import errors_in_words
from hpo.cost import Limits
from hpo.ranges import ParameterRange, decode
from hpo.ranking import Ranking
from hpo.search import Controller, Search
from hpo.simulation import mean_and_error, simulate
from hpo.strategies import History, HyperbandStrategy, Strategy, Task, by_number, lag_for, run_all, strategy_of
from trainers.gangs import Assignment


class Part(StrEnum):
    """A question."""

    LARGE = "large"
    SMALL = "small"
    ANSWERS = "answers"


SMALL, GANGS, LONGEST = 30, 16, 660.0
RESULTS = 500
"""With which a suggestion takes no longer than was promised: those of a job of so many trials."""
TRAININGS = 20
"""At which one answer and the free one are compared."""
TRIALS_OF_IT = 95
"""Of a job with so many trainings, and more."""
RANKING = Ranking(maximize=True)
METRIC = "value"
RANGES: dict[str, ParameterRange] = {f"x{side}": ContinuousParameter(0, 1) for side in range(6)}

SMALL_JOBS: dict[str, Callable[[], Strategy]] = {
    "Random, to the end": lambda: strategy_of("Random", None),
    "Bayesian, to the end": lambda: strategy_of("Bayesian", None),
    "Hyperband, random": lambda: HyperbandStrategy(suggestions="random"),
    "Hyperband": lambda: strategy_of("Hyperband", None),
}
ANSWERS: dict[str, Callable[[], Strategy]] = {
    "one answer": lambda: strategy_of("Hyperband", None),
    "free": FreeHyperband,
}


def searched(
    folder: Path, task: str, strategy: Strategy, trials: int, workers: int, seed: int, trainings: float
) -> tuple[float, float]:
    """Regret and epochs of one search, in trainings of all workers together; or of the whole job.

    Args:
        folder: of the recorded tasks.
        task: its name.
        strategy: that searches.
        trials: of the job.
        workers: that train at once.
        seed: of the search.
        trainings: when it is stopped, idle workers counted.
    """
    recorded = recorded_task(folder, task)
    units = recorded.curves.units
    plan = strategy.plan(recorded.ranges, trials, units)
    search = Search(
        name="search",
        metric=METRIC,
        mode="max",
        max_jobs=plan.trials,
        max_parallel_jobs=workers,
        max_resource=units,
        seed=seed,
        storage_path="/simulated",
        limits=Limits(max_seconds=trainings * units / workers),
    )
    found = simulate(recorded.curves, search, strategy, plan, recorded.ranges)
    regret = recorded.curves.regret(found.best_after(found.units), RANKING)
    assert regret is not None, "recorded tasks are whole"
    return regret, found.units / units


def over_tasks(
    folder: Path, strategy: Callable[[], Strategy], seed: int, trials: int, workers: int, trainings: float
) -> tuple[float, float]:
    """Regret and trainings of a seed, the means over tasks."""
    runs = [searched(folder, task, strategy(), trials, workers, seed, trainings) for task in task_names(folder)]
    return statistics.fmean(run[0] for run in runs), statistics.fmean(run[1] for run in runs)


def large(trials: int) -> dict[str, float]:
    """A job of trials of a second each on 16 simulated gangs, whose suggestions take the time that they take."""

    def height(assignment: Assignment, step: int) -> float:
        return -sum((float(assignment.hyperparameters[name]) - 0.3) ** 2 for name in RANGES)

    plan = run_all(trials, 1)
    gangs = WaitingGangs(height, metric=METRIC)
    task = Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=0, parallel=GANGS)
    history = History(plan, by_number(plan, lag_for(GANGS)))
    searcher = TimedSearch(RANGES, plan, metric=METRIC, mode="max", seed=0, history=history, gangs=gangs, ahead=True)
    prepared = replace(strategy_of("Bayesian", None).prepare(task), searcher=searcher)
    controller = Controller(
        Search(
            name="large",
            metric=METRIC,
            mode="max",
            max_jobs=trials,
            max_parallel_jobs=GANGS,
            max_resource=1,
            seed=0,
            storage_path="/simulated",
            untuned=False,
        ),
        searcher=prepared.searcher,
        scheduler=prepared.scheduler,
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=gangs,
        record=NoRecord(),
        clock=gangs.clock,
    )
    began = time.perf_counter()
    controller.run()
    took = sorted(searcher.took)
    return {
        "trials": trials,
        "gangs": GANGS,
        "simulated_seconds": gangs.now,
        "least_seconds": trials / GANGS,
        "suggestion_median": statistics.median(took),
        "suggestion_longest": took[-1],
        "wall_seconds": time.perf_counter() - began,
    }


# ---- what came out


def targets(result: Mapping[str, Any]) -> list[Target]:
    """The promises."""
    made = []
    if result["small"]:
        small = {name: _mean(result["small"][name]) for name in SMALL_JOBS}
        worse = small["Hyperband"][0] - small["Random, to the end"][0]
        share = small["Hyperband"][1] / small["Random, to the end"][1]
        beside = f"{SMALL} trials: regret, minus that of random ones to the end"
        made.append(Target(promise=beside, limit=0, measured=worse, unit=""))
        made.append(Target(promise=f"{SMALL} trials: share of the epochs", limit=1 / 3, measured=share, unit=""))
    for workers, of in result["answers"].items():
        costs = _mean(of["one answer"])[0] - _mean(of["free"])[0]
        promise = f"cost of one answer at {TRAININGS} trainings, {workers} workers"
        made.append(Target(promise=promise, limit=0.03, measured=costs, unit="of regret"))
    for trials, of in result["large"].items():
        if trials == str(RESULTS):
            longest = of["suggestion_longest"]
            made.append(Target(promise=f"a suggestion with up to {RESULTS} results", limit=0.2, measured=longest))
            continue
        promise, limit = f"{of['trials']:,} trials of 1 s on {GANGS} gangs", LONGEST * of["trials"] / 10_000
        made.append(Target(promise=promise, limit=limit, measured=of["simulated_seconds"]))
    return made


def rows(of: Mapping[str, Sequence[Sequence[float]]]) -> list[tuple[str, str, str]]:
    """A row a search: regret with its standard error over the seeds, and full trainings."""
    made = []
    for name, runs in of.items():
        mean, error = mean_and_error([run[0] for run in runs])
        made.append((name, f"{mean:.3f} ± {error:.3f}", f"{_mean(runs)[1]:.1f}"))
    return made


COLUMNS = ("search", "regret", "full trainings")
LARGE = (
    "trials",
    "seconds at least",
    "seconds",
    "gangs idle",
    "seconds of a suggestion, median",
    "seconds of the longest",
)


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/guides/model.md, by name, from result.json."""
    answers = {f"answers-{workers}": markdown(COLUMNS, rows(of)) for workers, of in result["answers"].items()}
    large = [
        (
            f"{of['trials']:,}",
            f"{of['least_seconds']:.1f}",
            f"{of['simulated_seconds']:.1f}",
            f"{1 - of['least_seconds'] / of['simulated_seconds']:.1%}",
            f"{of['suggestion_median']:.3f}",
            f"{of['suggestion_longest']:.3f}",
        )
        for of in result["large"].values()
    ]
    return {
        "small": markdown(COLUMNS, rows(result["small"])),
        "large": markdown(LARGE, large),
        "promises": promised(result["targets"]),
        **answers,
    }


def _mean(runs: Sequence[Sequence[float]]) -> tuple[float, float]:
    return statistics.fmean(run[0] for run in runs), statistics.fmean(run[1] for run in runs)


def main(
    bench_: Annotated[Optional[Path], typer.Option("--bench", help="Folder of the recorded tasks.")] = None,  # noqa: UP045
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds, from 0.")] = 12,
    workers: Annotated[Optional[list[int]], typer.Option(min=2, help="For one answer; else 4 and 16.")] = None,  # noqa: UP045
    trials: Annotated[int, typer.Option(min=100, help="Of the large job.")] = 10_000,
    parts: Annotated[Optional[list[Part]], typer.Option("--part", help="May be repeated; else all.")] = None,  # noqa: UP045
    out: Annotated[Path, typer.Option(help="Folder for result.json and steps.")] = Path("results/search-sizes"),
) -> None:
    """Search with a model in small and large jobs, and what one answer a seed costs."""
    console = Console(highlight=False)
    folder, each, asked = bench(bench_), range(seeds), parts or list(Part)
    result: dict[str, Any] = {"simulated": True, "seeds": list(each), "tasks": task_names(folder)}
    result |= {"small": {}, "answers": {}, "large": {}}
    with Steps(out, partial(console.print, markup=False)) as steps:

        def runs(name: str, strategy: Callable[[], Strategy], job: tuple[int, int, float]) -> list[tuple[float, float]]:
            known = {"tasks": result["tasks"], "job": job}
            return [
                steps.do(f"{name}-{seed}", known, partial(over_tasks, folder, strategy, seed, *job)) for seed in each
            ]

        if Part.LARGE in asked:
            for many in (RESULTS, trials):
                job = result["large"][str(many)] = steps.do(f"large-{many}", {"trials": many}, partial(large, many))
                console.print(f"{many:,} trials: {job['simulated_seconds']:.1f} s simulated")
        for name, strategy in SMALL_JOBS.items() if Part.SMALL in asked else ():
            result["small"][name] = runs(f"small-{name}", strategy, (SMALL, 1, math.inf))
            console.print(table(f"{SMALL} trials", COLUMNS, rows({name: result["small"][name]})))
        for count in (workers or (4, 16)) if Part.ANSWERS in asked else ():
            of = result["answers"][str(count)] = {}
            for name, strategy in ANSWERS.items():
                of[name] = runs(f"answers-{count}-{name}", strategy, (TRIALS_OF_IT + 5 * count, count, TRAININGS))
            console.print(table(f"{count} workers", COLUMNS, rows(of)))
    made = targets(result)
    console.print(promises(made))
    console.print(f"written to {write(out, {**result, 'targets': targets_to_json(made)})}", soft_wrap=True)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
