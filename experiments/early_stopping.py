"""Gain and loss by Hyperband: against the same configurations run to the end, all of them and fewer.

    python -m experiments.early_stopping [--problem bank|digits] [--seeds 20] [--data-dir DIR] [--out DIR]

XGBoost on the bank marketing data on three workers, or a network on scikit-learn's digits on two, on one warm gang.
Each seed is searched three times, 30 trials each: by Hyperband as it is where nothing is said, whose configurations a
model suggests; by Hyperband's brackets over random configurations; and by the same random configurations, all trained
to the end. Two plain random searches stand beside them, each for as many rounds as one of the two Hyperbands used,
which are enough for the first few configurations. A trial's model depends on its configuration, seed and rungs alone,
and it goes through the same rungs in all random searches: so these two train nothing, their trials are the first of
those that all ran to the end. Compared are the rounds used, and the winners on the validation rows that chose them and
on test rows that did not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from experiments.shared.benchmark import promises, table, write
from experiments.shared.network import channels
from experiments.shared.published import Steps
from experiments.stopping import page
from experiments.stopping.kept_gangs import KeptGangs
from experiments.stopping.problems import PROBLEMS, StoppingProblem
from experiments.stopping.ways import Found, Place, Way, each_way
from hpo.cli import errors_in_words
from trainers import Channel, ConfigurationError
from trainers.cluster import cluster
from trainers.datasets import Dataset
from trainers.gangs import RayGangs


def compare(
    problem: StoppingProblem, dataset: Dataset, seeds: Sequence[int], storage_path: str, console: Console, steps: Steps
) -> list[dict[Way, Found]]:
    """All searches of each seed, on one warm gang; a seed that was searched before is read."""
    trainer, made = problem.trainer(problem.workers), []
    settings = {
        "trainer": trainer.to_json(),
        "ranges": {name: bounds.to_json() for name, bounds in problem.ranges.items()},
        "units": problem.units,
        "dataset": dataset.name,
    }
    with cluster(problem.workers, console.print):
        placed = {name: Channel.of(rows, name=name).place(problem.workers) for name, rows in channels(dataset).items()}
        gangs = RayGangs(
            "early-stopping", lambda workers: trainer.program(placed), trainer.scaling, notify=console.print
        )
        place = Place(problem=problem, gangs=KeptGangs(gangs), storage_path=storage_path, workers=problem.workers)
        try:
            for seed in seeds:
                work = partial(_searched, place, seed)
                kept = steps.do(f"{problem.name}-{seed}", settings, work)
                made.append({way: Found(**kept[way.name.lower()]) for way in Way})
                ways = [f"{way}: {found.rounds}, {found.validation:.4f}" for way, found in made[-1].items()]
                console.print(f"seed {seed}, {problem.unit}s and validation. {'; '.join(ways)}", soft_wrap=True)
        finally:
            gangs.close()
    return made


def _searched(place: Place, seed: int) -> dict[str, Any]:
    """One seed, as JSON holds it."""
    return {way.name.lower(): asdict(found) for way, found in each_way(place, seed).items()}


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, by name, from result.json."""
    return page.page_tables(result)


def main(
    problem: Annotated[str, typer.Option(help="bank, or digits, which needs no download.")] = "bank",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0.")] = 20,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result.json, the checkpoints, and the seeds that are done.")
    ] = None,
) -> None:
    """Compare Hyperband with random search, for as many rounds and for all of them, over many seeds."""
    if problem not in PROBLEMS:
        raise ConfigurationError(f"--problem is {problem!r}; give {' or '.join(PROBLEMS)}")
    console, searched = Console(highlight=False), PROBLEMS[problem]
    dataset = searched.load(data_dir)
    folder = out or Path(f"results/early_stopping-{problem}")
    with Steps(folder, partial(console.print, markup=False)) as steps:
        found = compare(searched, dataset, range(seeds), str(folder.absolute() / "checkpoints"), console, steps)
    came = page.result(searched, dataset, found)
    console.print(table(f"{dataset.title}: means over {seeds} seeds", ("", *Way), page.ways(came)))
    console.print(f"\n{came['verdict']}\n")
    console.print(promises(page.targets(came)))
    console.print(f"written to {write(folder, came)}", soft_wrap=True)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
