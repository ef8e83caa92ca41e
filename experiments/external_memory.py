"""XGBoost's external memory on gangs: rows that are larger than a worker's memory, and how fast they are.

    python -m experiments.external_memory PART [--out DIR] [--quick]

Parts, each run of which is a result of its own:

- larger: 4 GB of generated rows on disk, of which two workers train, each in a group of the kernel's (cgroup v1, which
  takes root) that holds 1 GB: less what the process holds as it is put there, so that its resident memory is limited as
  a whole. In memory, the same gang is ended by the kernel.
- long: 40 million generated rows, 10 columns, alike, with 2 GB for each worker: what XGBoost holds of a row itself, its
  label, gradient, score and places, is a gigabyte of 20 million rows.
- bank: the UCI bank marketing data, each row 100 times (3.5 million rows), on two workers; in memory and on disk.
- turns: rounds a second in one process and thread, of rows on disk, of rows in memory, and of XGBoost's own example by
  hand, in alternating turns. By hand, rows that are scored are in bins too, and arrays are on disk as arrays already.
- trials: a job of 200 trials on gangs that stay up, which tune `max_bin` and the number of workers, in memory and on
  disk: what a worker holds, beside what it may.

What is resident "at most" is the kernel's count for a process (VmHWM), pages of files that it maps included.
"""

from __future__ import annotations

import gc
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import ray
import typer
from rich.console import Console

from experiments.external.by_hand import ByHand
from experiments.external.limited import LIMIT, NOTES, LimitedTrainer, notes, remove_groups
from experiments.external.page import page_tables as page_tables
from experiments.external.rows import Rows, bank, generated
from experiments.shared.benchmark import Target, apart, promises, targets_to_json, write
from hpo import HyperparameterTuner, IntegerParameter
from hpo.cli import errors_in_words
from trainers import Channel, GangError, ScalingConfig, XGBoostTrainer

GB = 10**9
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "max_depth": 6, "nthread": 1}
WORKERS = 2
Part = Literal["larger", "long", "bank", "turns", "trials"]


def _size(rows: Rows) -> dict[str, int]:
    return {"rows": rows.rows, "columns": rows.columns}


def channels(rows: Rows) -> dict[str, Channel]:
    """Of a table."""
    return {
        "train": Channel.of(rows.train, target="y", name="train"),
        "validation": Channel.of(rows.validation, target="y", name="validation"),
    }


def on_gang(rows: Rows, folder: Path, rounds: int, *, external: bool, limit: int = 0) -> dict[str, Any]:
    """One training on two workers, each of which may hold so many bytes; 0 is no limit."""
    noted = Path(tempfile.mkdtemp(dir=folder))
    os.environ.update({NOTES: str(noted), LIMIT: str(limit or "")})
    trainer = LimitedTrainer(
        scaling=ScalingConfig(num_workers=WORKERS, resources_per_worker={"CPU": 1}),
        hyperparameters={**STATIC, "num_round": rounds},
        external_memory=external,
    )
    began = time.perf_counter()
    try:
        result = trainer.fit(channels(rows), storage_path=str(folder / "models"))
    except GangError as error:
        if external:
            raise
        return {"external": external, "limit": limit, "error": str(error).splitlines()[0]}
    finally:
        remove_groups()
    lines = notes(noted)
    return {
        "external": external,
        "limit": limit,
        "auc": result.metrics["validation:auc"],
        "rounds": rounds,
        "rounds_a_second": rounds / result.training_seconds,
        "seconds": time.perf_counter() - began,
        "most": [line["most"] for line in lines if "rounds" in line],
        "opened": [line["opened"] for line in lines if "opened" in line],
    }


def larger_than_memory(rows: Rows, folder: Path, rounds: int, limit: int) -> dict[str, Any]:
    """Training on disk under a limit, and what becomes of the same in memory."""
    found = [on_gang(rows, folder, rounds, external=external, limit=limit) for external in (True, False)]
    return {"rows": _size(rows), "runs": found}


def both_ways(rows: Rows, folder: Path, rounds: int) -> dict[str, Any]:
    """Training in memory and on disk, on two workers without a limit."""
    return {
        "rows": _size(rows),
        "runs": [on_gang(rows, folder, rounds, external=external) for external in (True, False)],
    }


def in_turns(rows: Rows, folder: Path, rounds: int, turns: int) -> dict[str, Any]:
    """Rounds a second of a process alone: each turn trains on disk, in memory and by hand, in another order."""
    hand = ByHand(rows, folder / "by-hand", STATIC)
    ways: dict[str, Callable[[int], tuple[float, float]]] = {
        "on disk": partial(_alone, rows, folder, True),
        "in memory": partial(_alone, rows, folder, False),
        "by hand": hand.train,
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    auc: dict[str, float] = {}
    for turn in range(turns):
        for way in [*ways, *ways][turn % 3 : turn % 3 + 3]:
            seconds, auc[way] = ways[way](rounds)
            found[way].append(rounds / seconds)
            gc.collect()
    return {"rows": _size(rows), "rounds": rounds, "turns": found, "auc": auc}


def _alone(rows: Rows, folder: Path, external: bool, rounds: int) -> tuple[float, float]:
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
        hyperparameters={**STATIC, "num_round": rounds},
        external_memory=external,
    )
    result = trainer.fit(channels(rows), storage_path=str(folder / "models"))
    return result.training_seconds, result.metrics["validation:auc"]


def many_trials(rows: Rows, folder: Path, trials: int, *, external: bool) -> dict[str, Any]:
    """A job that tunes `max_bin` and the number of workers: what workers hold from trial to trial."""
    noted = Path(tempfile.mkdtemp(dir=folder))
    os.environ.update({NOTES: str(noted), LIMIT: ""})
    trainer = LimitedTrainer(
        scaling=ScalingConfig(resources_per_worker={"CPU": 1}),
        hyperparameters={**STATIC, "num_round": 1},
        external_memory=external,
    )
    tuner = HyperparameterTuner(
        trainer,
        "validation:auc",
        {"max_bin": IntegerParameter(16, 256), "num_workers": IntegerParameter(1, WORKERS)},
        strategy="Random",
        max_jobs=trials,
        max_parallel_jobs=1,
        random_seed=1729,
        storage_path=str(folder / "jobs"),
        store=f"sqlite:///{noted}.db",
        console=Console(quiet=True),
    )
    tuner.fit(channels(rows))
    lines = notes(noted)
    by_worker: dict[int, list[dict[str, Any]]] = {}
    for line in lines:
        by_worker.setdefault(line["pid"], []).append(line)
    return {
        "external": external,
        "trials": trials,
        "workers": [_held(of_worker) for of_worker in by_worker.values()],
    }


def _held(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What one worker held before its rows came, once its first matrices were there, and after each trial."""
    opened, *trials = lines
    values = {line["max_bin"] for line in trials}
    own = [line["own"] for line in trials]
    return {
        "gang": opened["workers"],
        "trials": len(trials),
        "values_of_max_bin": len(values),
        "before": opened["before"]["own"],
        "opened": opened["own"],
        "first": max(own[: len(own) // 4 + 1]),
        "last": max(own[-(len(own) // 4 + 1) :]),
        "median": statistics.median(own),
        "most": max(own),
    }


def targets(part: str, result: Mapping[str, Any]) -> list[Target]:
    """What was promised of a part."""
    if part == "turns":
        return [
            *(_of(result["turns"], way) for way in ("by hand", "in memory")),
            Target(
                promise="AUC on disk, less that in memory",
                limit=0.0,
                measured=abs(result["auc"]["on disk"] - result["auc"]["in memory"]),
                unit="",
            ),
        ]
    if part in ("larger", "long"):
        on_disk, in_memory = result["runs"]
        return [
            Target(
                promise="a worker's resident memory at most",
                limit=on_disk["limit"] / GB,
                measured=max(on_disk["most"]) / GB,
                unit="GB",
            ),
            Target(
                promise="in memory, the same gang is ended",
                limit=1,
                measured="error" in in_memory,
                at_least=True,
                unit="",
            ),
        ]
    if part == "bank":
        on_disk, in_memory = result["runs"]
        return [
            Target(
                promise="AUC on disk, less that in memory",
                limit=0.0,
                measured=abs(on_disk["auc"] - in_memory["auc"]),
                unit="",
            )
        ]
    return [
        Target(
            promise=f"worker of {each['gang']}, {'on disk' if job['external'] else 'in memory'}, at most after a trial",
            limit=allowed(each, result["rows"], job["external"]) / 1e6,
            measured=each["most"] / 1e6,
            unit="MB",
            note=f"{each['trials']} trials",
        )
        for job in result["jobs"]
        for each in job["workers"]
    ]


def _of(turns: Mapping[str, Sequence[float]], way: str) -> Target:
    """What rounds a second on disk are of those of another way; each turn's stands beside the median."""
    ratios = [mine / other for mine, other in zip(turns["on disk"], turns[way], strict=True)]
    return Target(
        promise=f"rounds a second on disk, of those {way}",
        limit=0.95,
        measured=statistics.median(ratios),
        unit="x",
        at_least=True,
        note=f"median of {', '.join(f'{ratio:.2f}' for ratio in ratios)}",
    )


def allowed(worker: Mapping[str, Any], rows: Mapping[str, Any], external: bool) -> float:
    """Bytes that a worker may hold: what it held before, XGBoost's room for a round, and matrices of two `max_bin`.

    A matrix takes three bytes a number in memory, with its index by column; each row 40 bytes beside it, of labels,
    gradients, scores and places.
    """
    shard = rows["rows"] / worker["gang"]
    matrices = 0 if external else 2 * 3 * shard * rows["columns"]
    return float(worker["before"] + matrices + 2 * 40 * shard + 100e6)


def main(
    part: Annotated[Part, typer.Argument(help="What to measure.")],
    quick: Annotated[bool, typer.Option("--quick", help="Few rows: whether it runs.")] = False,
    folder: Annotated[Path | None, typer.Option(help="For the rows; a temporary one by default.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where the bank marketing data lie.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/external_memory"),
) -> None:
    """Measure XGBoost's external memory on gangs."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="external-memory-", dir=folder) as scratch:
        result = measured(part, Path(scratch), data_dir, quick)
    kept = targets(part, result)
    console.print(promises(kept))
    console.print(f"written to {write(out, {'part': part, **result, 'targets': targets_to_json(kept)})}")


def measured(part: str, folder: Path, data_dir: str | None, quick: bool) -> dict[str, Any]:
    """The figures of a part."""
    if part == "turns":
        rows = generated(folder, 40_000 if quick else 1_000_000, 25)
        return dict(apart(in_turns, rows, folder, 3 if quick else 40, 2 if quick else 7))
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ["TMPDIR"] = str(folder)
    ray.init(address="local", num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    rounds = 3 if quick else 10
    if part == "larger":
        return larger_than_memory(generated(folder, 100_000 if quick else 10_000_000, 100), folder, rounds, GB)
    if part == "long":
        return larger_than_memory(generated(folder, 400_000 if quick else 40_000_000, 10), folder, rounds, 2 * GB)
    if part == "bank":
        return both_ways(bank(folder / "bank", data_dir, 1 if quick else 100), folder, rounds)
    rows = generated(folder, 20_000 if quick else 200_000, 20)
    trials = 8 if quick else 200
    return {"rows": _size(rows), "jobs": [many_trials(rows, folder, trials, external=way) for way in (False, True)]}


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
