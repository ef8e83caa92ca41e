"""Savings and losses of completion criteria, on recorded tasks.

    python -m experiments.completion [--bench FOLDER] [--seeds 3] [--first-seed 10] [--tasks NAME]

A search runs to its plan's end in the real controller on one simulated gang (`hpo.simulation`). Criteria decide by
numbers and values of trials alone, so where each of them would have ended the search follows from its trials.

Loss is regret at that trial less regret at the plan's end, of the best trial; regret is 0 for the best of the table, 1
for the median final value. The limits of convergence were chosen on seeds 0 and 1, so the run begins with others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from experiments.shared.benchmark import markdown, table, write
from experiments.shared.published import Steps
from experiments.shared.recorded_tasks import RecordedTask, bench, recorded_task, task_names
from hpo import TuningJobCompletionCriteriaConfig
from hpo.cli import errors_in_words
from hpo.ranking import Ranking
from hpo.search import Search
from hpo.simulation import ReplayedTrial, simulate
from hpo.strategies import Completion, Plan, Strategy, Verdict, strategy_of
from hpo.text import count

SEARCHES = {"Random": 80, "Bayesian": 80, "Hyperband": 180}
"""Trials of each strategy: 80 full trainings, or four rounds of brackets, which are about 36 of them."""

CRITERIA = {
    "convergence": TuningJobCompletionCriteriaConfig(complete_on_convergence=True),
    "20 trials without 1%": TuningJobCompletionCriteriaConfig(max_number_of_training_jobs_not_improving=20),
}

RANKING = Ranking(maximize=True)
COLUMNS = ("search", "criterion", "ended early", "units saved", "regret at the end", "regret lost", "most lost")


def searched(task: RecordedTask, strategy: Strategy, trials: int, seed: int) -> tuple[Plan, Sequence[ReplayedTrial]]:
    """A whole search: its plan and its trials."""
    plan = strategy.plan(task.ranges, trials, task.curves.units)
    return plan, simulate(task.curves, search_over(plan, seed), strategy, plan, task.ranges).trials


def search_over(plan: Plan, seed: int) -> Search:
    """The settings of a whole search, one trial after another."""
    return Search(
        name="search",
        metric="value",
        mode="max",
        max_jobs=plan.trials,
        max_parallel_jobs=1,
        max_resource=plan.max_resource,
        seed=seed,
        storage_path="/simulated",
    )


def verdict_on(
    criteria: TuningJobCompletionCriteriaConfig, task: RecordedTask, plan: Plan, trials: Sequence[ReplayedTrial]
) -> Verdict | None:
    """Where a criterion would have ended a search, told of its trials in their order; None where it would not."""
    completion = Completion(criteria, plan, RANKING, ranges=task.ranges, max_resource=plan.max_resource)
    rungs = [bracket.rungs for bracket in plan.brackets for _ in range(bracket.sizes[0])]
    for trial in trials:
        completion.begun(trial.number, task.curves.configurations[trial.row])
        for rung in rungs[trial.number]:
            if rung <= trial.units and rung < task.curves.diverged_at[trial.row]:
                completion.reached(trial.number, rung, float(task.curves.values[trial.row, rung - 1]))
        completion.ended(trial.number, trial.value, resource=trial.units)
        if (verdict := completion.judge()) is not None:
            return verdict
    return None


def measured(task: RecordedTask, strategy: str, trials: int, seed: int) -> dict[str, Any]:
    """What each criterion would have saved and lost in one search."""
    plan, ran = searched(task, strategy_of(strategy, None), trials, seed)
    whole, units = _regret(task, ran), sum(trial.units for trial in ran)
    found: dict[str, Any] = {}
    for name, criteria in CRITERIA.items():
        verdict = verdict_on(criteria, task, plan, ran)
        counted = ran if verdict is None else ran[: verdict.last + 1]
        found[name] = {
            "trials": len(counted),
            "saved": 1 - sum(trial.units for trial in counted) / units,
            "lost": _regret(task, counted) - whole,
        }
    return {"regret": whole, "trials": len(ran), "criteria": found}


def _regret(task: RecordedTask, trials: Sequence[ReplayedTrial]) -> float:
    best = max((trial.value for trial in trials if math.isfinite(trial.value)), default=math.nan)
    regret = task.curves.regret(best, RANKING)
    assert regret is not None, "recorded tasks are whole"
    return regret


def summary(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row a strategy and criterion, over all tasks and seeds."""
    rows: list[tuple[str, ...]] = []
    for strategy, runs in result["runs"].items():
        for criterion in result["criteria"]:
            of = [run["criteria"][criterion] for run in runs]
            early = sum(each["trials"] < run["trials"] for each, run in zip(of, runs, strict=True))
            rows.append(
                (
                    strategy,
                    criterion,
                    f"{early} of {len(runs)}",
                    f"{statistics.fmean(each['saved'] for each in of):.0%}",
                    f"{statistics.fmean(run['regret'] for run in runs):.3f}",
                    f"{statistics.fmean(each['lost'] for each in of):.3f}",
                    f"{max(each['lost'] for each in of):.3f}",
                )
            )
    return rows


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The table for docs/, from result.json."""
    return {"summary": markdown(COLUMNS, summary(result))}


def run(
    folder: Path, out: Path, *, tasks: Sequence[str], seeds: Sequence[int], say: Callable[[str], None]
) -> dict[str, Any]:
    """All searches; one is a step that is not done again.

    Args:
        folder: of the recorded tasks.
        out: where steps are kept.
        tasks: by name.
        seeds: of each.
        say: is told of progress.
    """
    runs: dict[str, list[dict[str, Any]]] = {strategy: [] for strategy in SEARCHES}
    with Steps(out, say) as steps:
        for seed in seeds:
            for task in tasks:
                for strategy, trials in SEARCHES.items():
                    work = partial(measured, recorded_task(folder, task), strategy, trials, seed)
                    made = steps.do(f"{task}-{strategy}-{seed}".replace("/", "-"), {"trials": trials}, work)
                    runs[strategy].append({"task": task, "seed": seed, **made})
                    say(f"{task}, {strategy}, seed {seed}: {made['criteria']}")
    return {"simulated": True, "tasks": list(tasks), "seeds": list(seeds), "criteria": [*CRITERIA], "runs": runs}


def main(
    bench_: Annotated[Optional[Path], typer.Option("--bench", help="Folder of the recorded tasks.")] = None,  # noqa: UP045
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 10,
    tasks: Annotated[Optional[list[str]], typer.Option(help="A task's name; may be repeated.")] = None,  # noqa: UP045
    out: Annotated[Path, typer.Option(help="Folder for result.json and steps.")] = Path("results/completion"),
) -> None:
    """Measure what completion criteria save and lose on recorded tasks."""
    console = Console(highlight=False)
    folder = bench(bench_)
    result = run(
        folder,
        out,
        tasks=tasks or task_names(folder),
        seeds=range(first_seed, first_seed + seeds),
        say=partial(console.print, soft_wrap=True, markup=False),
    )
    title = f"{count(len(result['tasks']), 'task')}, {count(seeds, 'seed')}"
    console.print(table(title, COLUMNS, summary(result)))
    console.print(f"written to {write(out, result)}", soft_wrap=True)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
