"""Regret of all strategies, and of other packages in the same run, on recorded tasks with one worker and with many.

    python -m experiments.search_quality [--bench FOLDER] [--seeds 20] [--workers 1] [--arms NAME] [--processes 2]

A unit of a curve takes a second of a worker, so that a budget in full trainings is one in seconds: of all workers
together, idle ones too. Every search runs until 20 full trainings are spent, its own cost of thinking not counted. The
strategies run in the real controller on simulated gangs (`hpo.simulation`), in a job whose plan is for at least as many
units; Optuna, Syne Tune and DEHB are asked and told on the same clock. A suggestion is mapped to the nearest recorded
configuration that the search has not had yet.

Regret is that of the best value seen so far at any unit: 0 is the best of the table, 1 the median final value.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from experiments.baselines import on_curves
from experiments.shared.benchmark import markdown, table, write
from experiments.shared.pictures import Line, learning
from experiments.shared.published import Steps
from experiments.shared.recorded_tasks import RecordedTask, bench, recorded_task, task_names
from hpo.cli import errors_in_words
from hpo.cost import Limits
from hpo.ranking import Ranking
from hpo.report import Figure, look
from hpo.search import Search
from hpo.simulation import mean_and_error, simulate
from hpo.strategies import AshaStrategy, HyperbandStrategy, Plan, Strategy, strategy_of
from hpo.text import count, enumerated
from trainers.errors import ConfigurationError

BUDGETS = (5, 10, 20)
"""Those of the tables, in full trainings."""
TRAININGS = range(1, BUDGETS[-1] + 1)
"""Those at which regret is measured."""
WORKERS = (1, 4, 16)
RANKING = Ranking(maximize=True)

STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "Random": lambda units: strategy_of("Random", None),
    "Bayesian": lambda units: strategy_of("Bayesian", None),
    "Hyperband, random": lambda units: HyperbandStrategy(suggestions="random"),
    "Hyperband": lambda units: strategy_of("Hyperband", None),
    "ASHA, random": lambda units: AshaStrategy(suggestions="random"),
    "ASHA": lambda units: strategy_of("ASHA", None),
}
"""Our strategies by name, for trials of so many units."""

OTHERS = {
    "Optuna TPE, HyperbandPruner": "optuna",
    "Optuna GP": "optuna",
    "Syne Tune ASHACQR": "syne_tune",
    "Syne Tune BOHB": "syne_tune",
    "DEHB": "dehb",
}
"""The module that each of the others needs."""

ARMS = (*STRATEGIES, *OTHERS)
IN_SHORT = ("Hyperband", "Optuna TPE, HyperbandPruner", "Random")


# ---- one search


def plan_for(strategy: Strategy, task: RecordedTask, workers: int) -> Plan:
    """The smallest plan that keeps all workers busy until the largest budget is spent."""
    units = task.curves.units
    enough = (BUDGETS[-1] + workers - 1) * units
    jobs = BUDGETS[-1]
    while (used := (plan := strategy.plan(task.ranges, jobs, units)).resource) < enough:
        jobs += 1 + (enough - used) // units
    return plan


def other(arm: str) -> Callable[..., on_curves.Seen]:
    """The simulation of another package's search; those that a comparison alone needs are imported when it runs.

    Raises:
        ConfigurationError: the package is not installed.
    """
    on_curves.check_installed(arm, OTHERS[arm])
    if arm == "DEHB":
        from experiments.baselines import dehb_on_curves

        return dehb_on_curves.simulate
    if OTHERS[arm] == "syne_tune":
        from experiments.baselines import syne_tune_on_curves

        makers = {"Syne Tune ASHACQR": syne_tune_on_curves.conformal, "Syne Tune BOHB": syne_tune_on_curves.kernels}
        return partial(syne_tune_on_curves.simulate, make=makers[arm])
    from experiments.baselines import optuna_on_curves

    studies = {"Optuna TPE, HyperbandPruner": optuna_on_curves.tpe, "Optuna GP": optuna_on_curves.gaussian_process}
    return partial(optuna_on_curves.simulate, make=studies[arm])


def regrets(task: RecordedTask, arm: str, workers: int, seed: int) -> list[float]:
    """The regret of one search after each of `TRAININGS`."""
    units = task.curves.units
    times = [trainings * units / workers for trainings in TRAININGS]
    best_at: Callable[[float], float]
    if arm in OTHERS:
        best_at = other(arm)(task, seed=seed, workers=workers, seconds=times[-1]).best_at
    else:
        strategy = STRATEGIES[arm](units)
        plan = plan_for(strategy, task, workers)
        search = Search(
            name="search",
            metric="value",
            mode="max",
            max_jobs=plan.trials,
            max_parallel_jobs=workers,
            max_resource=units,
            seed=seed,
            storage_path="/simulated",
            limits=Limits(max_seconds=times[-1]),
        )
        best_at = simulate(task.curves, search, strategy, plan, task.ranges).best_at
    found = [task.curves.regret(best_at(seconds), RANKING) for seconds in times]
    assert None not in found, "recorded tasks are whole"
    return [regret for regret in found if regret is not None]


def timed(folder: Path, name: str, arm: str, workers: int, seed: int) -> dict[str, Any]:
    """One search, and the seconds that it took itself."""
    task = recorded_task(folder, name)
    began = time.perf_counter()
    return {"regrets": regrets(task, arm, workers, seed), "seconds": time.perf_counter() - began}


# ---- what came out


def summary(result: Mapping[str, Any], workers: int) -> list[tuple[str, ...]]:
    """A row an arm: means over tasks with standard errors over seeds; ranks and how often it is best at the end."""
    found, rows = result["regrets"][str(workers)], []
    last = {
        task: {arm: mean_and_error([run[-1] for run in runs]) for arm, runs in of.items()} for task, of in found.items()
    }
    for arm in result["arms"]:
        cells = []
        for regrets_then in zip(*over_tasks(found, arm), strict=True):
            cells.append(figure(regrets_then))
        ranks = [1 + sum(other[0] < of[arm][0] for other in of.values()) for of in last.values()]
        good = sum(of[arm][0] <= sum(_with_error(min(of.values()))) for of in last.values())
        seconds = result["seconds"][str(workers)][arm]
        rows.append((arm, *cells, f"{statistics.fmean(ranks):.1f}", f"{good} of {len(last)}", f"{seconds:.2f}"))
    return rows


def over_tasks(found: Mapping[str, Any], arm: str) -> list[list[float]]:
    """An arm's regrets, the mean over tasks: a list a seed."""
    seeds = zip(*(of[arm] for of in found.values()), strict=True)
    return [[statistics.fmean(each) for each in zip(*runs, strict=True)] for runs in seeds]


def pictures(result: Mapping[str, Any]) -> list[Figure]:
    """Regret over the budget, a picture for each number of workers."""
    colours = (*look.SERIES, look.OCHRE, look.ROSE, look.GREY)
    return [
        learning(
            f"regret-{workers}",
            f"Regret with {count(workers, 'worker')}, mean of {count(len(result['tasks']), 'task')}",
            f"Bands are from the least to the most of {count(len(result['seeds']), 'seed')}. Idle workers count.",
            [
                Line(label=arm, curves=result["curves"][str(workers)][arm], colour=colour)
                for arm, colour in zip(result["arms"], itertools.cycle(colours), strict=False)
            ],
            "full training",
            "regret",
        )
        for workers in result["workers"]
    ]


def _with_error(of: tuple[float, float]) -> tuple[float, float]:
    """A mean and its standard error, 0 where there is one value only."""
    mean, error = of
    return mean, 0.0 if error != error else error


def by_task(result: Mapping[str, Any], workers: int, place: int) -> list[tuple[str, ...]]:
    """A row a task: the regret of each arm at one of the budgets."""
    found = result["regrets"][str(workers)]
    return [(task, *(figure([run[place] for run in of[arm]]) for arm in result["arms"])) for task, of in found.items()]


def figure(values: Sequence[float]) -> str:
    """A mean with its standard error."""
    mean, error = mean_and_error(values)
    return f"{mean:.3f}" if error != error else f"{mean:.3f} ± {error:.3f}"


def columns(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Of `summary`."""
    return (
        "search",
        *(f"regret at {budget} trainings" for budget in result["budgets"]),
        f"mean rank at {result['budgets'][-1]}",
        "within a standard error of the best",
        "seconds a search",
    )


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables for docs/, by name, from result.json: `summary-1` with one worker, `tasks-1-20` at 20 trainings.

    `short-1-20` is a line of the mean regrets of `IN_SHORT`.
    """
    made = {}
    for workers in result["workers"]:
        made[f"summary-{workers}"] = markdown(columns(result), summary(result, workers))
        for place, budget in enumerate(result["budgets"]):
            made[f"short-{workers}-{budget}"] = ", ".join(
                f"{arm} {figure([of[place] for of in over_tasks(result['regrets'][str(workers)], arm)])}"
                for arm in IN_SHORT
                if arm in result["arms"]
            )
            made[f"tasks-{workers}-{budget}"] = markdown(("task", *result["arms"]), by_task(result, workers, place))
    return made


# ---- running


@contextmanager
def mapper(processes: int) -> Iterator[Callable[..., Any]]:
    """Like `map`, in so many processes; in this one where that is one."""
    if processes == 1:
        yield map
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=one_thread) as pool:
        yield pool.map


def _all_of(each_of: Callable[..., Any], work: Callable[[int], Any], seeds: Sequence[int]) -> list[Any]:
    return list(each_of(work, seeds))


def one_thread() -> None:
    """Keeps the linear algebra of a process on one core, which the others leave it."""
    import torch

    torch.set_num_threads(1)


def run(
    folder: Path,
    out: Path,
    *,
    tasks: Sequence[str],
    arms: Sequence[str],
    workers: Sequence[int],
    seeds: Sequence[int],
    processes: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """All searches; those of an arm, a task and a number of workers are a step that is not done again.

    Args:
        folder: of the recorded tasks.
        out: where steps are kept.
        tasks: by name.
        arms: names out of `ARMS`.
        workers: numbers of them.
        seeds: of each.
        processes: that simulate at once.
        say: is told of progress.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {str(each): {task: {} for task in tasks} for each in workers}
    seconds: dict[str, dict[str, float]] = {}
    with Steps(out, say) as steps, mapper(processes) as each_of:
        for at_once in workers:
            for arm in arms:
                took: list[float] = []
                for task in tasks:
                    step = f"{task}-{at_once}-{arm}".replace("/", "-").replace(" ", "-").replace(",", "")
                    settings = {"seeds": list(seeds), "trainings": list(TRAININGS)}
                    work = partial(timed, folder, task, arm, at_once)
                    runs = steps.do(step, settings, partial(_all_of, each_of, work, seeds))
                    found[str(at_once)][task][arm] = [each["regrets"] for each in runs]
                    took += [each["seconds"] for each in runs]
                    last = figure([each["regrets"][-1] for each in runs])
                    say(f"{count(at_once, 'worker')}, {task}, {arm}: {last} at {BUDGETS[-1]} trainings")
                seconds.setdefault(str(at_once), {})[arm] = statistics.fmean(took)
    return {
        "simulated": True,
        "curves": {each: {arm: _rounded(over_tasks(of, arm)) for arm in arms} for each, of in found.items()},
        "budgets": BUDGETS,
        "workers": list(workers),
        "tasks": list(tasks),
        "arms": list(arms),
        "seeds": list(seeds),
        "regrets": {
            each: {
                task: {arm: _rounded([[run[budget - 1] for budget in BUDGETS] for run in of[arm]]) for arm in arms}
                for task, of in of_tasks.items()
            }
            for each, of_tasks in found.items()
        },
        "seconds": seconds,
    }


def _rounded(runs: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[round(regret, 4) for regret in run] for run in runs]


def chosen(asked: Sequence[str] | None, known: Sequence[str], option: str) -> list[str]:
    """Those that were asked for, or all.

    Raises:
        ConfigurationError: one is not known.
    """
    if unknown := [name for name in asked or () if name not in known]:
        raise ConfigurationError(f"{option} {unknown[0]!r} is unknown; give one of {enumerated(known)}")
    return list(asked or known)


def installed_arms(asked: Sequence[str] | None, say: Callable[[str], None]) -> list[str]:
    """The arms that were asked for; else all whose package is installed, and a line for each of the others.

    Raises:
        ConfigurationError: one that was asked for is unknown, or its package is not installed.
    """
    arms = chosen(asked, ARMS, "--arms")
    needed = {arm: OTHERS[arm] for arm in arms if arm in OTHERS}
    if asked:
        for arm, module in needed.items():
            on_curves.check_installed(arm, module)
        return arms
    missing = [arm for arm, module in needed.items() if not on_curves.installed(module)]
    for arm in missing:
        say(f"{arm} is left out: {needed[arm]} is not installed; {on_curves.remedy()}")
    return [arm for arm in arms if arm not in missing]


def main(
    bench_: Annotated[Optional[Path], typer.Option("--bench", help="Folder of the recorded tasks.")] = None,  # noqa: UP045
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0.")] = 20,
    workers: Annotated[Optional[list[int]], typer.Option(min=1, help="May be repeated; else 1, 4 and 16.")] = None,  # noqa: UP045
    arms: Annotated[Optional[list[str]], typer.Option(help="A search's name; may be repeated.")] = None,  # noqa: UP045
    tasks: Annotated[Optional[list[str]], typer.Option(help="A task's name; may be repeated.")] = None,  # noqa: UP045
    processes: Annotated[int, typer.Option(min=1, help="How many searches are simulated at once.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for result.json, tables, pictures and steps.")] = Path(
        "results/search-quality"
    ),
) -> None:
    """Compare searches on recorded tasks, for as many units of training."""
    console = Console(highlight=False)
    folder = bench(bench_)
    say = partial(console.print, soft_wrap=True, markup=False)
    result = run(
        folder,
        out,
        tasks=chosen(tasks, task_names(folder), "--tasks"),
        arms=installed_arms(arms, say),
        workers=workers or WORKERS,
        seeds=range(seeds),
        processes=processes,
        say=say,
    )
    for at_once in result["workers"]:
        title = f"{count(at_once, 'worker')}, {count(seeds, 'seed')}, {count(len(result['tasks']), 'task')}"
        console.print(table(title, columns(result), summary(result, at_once)))
    (out / "tables.md").write_text(
        "\n\n".join(f"## {name}\n\n{made}" for name, made in page_tables(result).items()) + "\n", encoding="utf-8"
    )
    for picture in pictures(result):
        picture.save(out / "pictures")
    del result["curves"]  # They are in the pictures and in the steps.
    console.print(f"written to {write(out, result)}", soft_wrap=True)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
