"""Cost of `backend="xgboost_ray"` beside native gangs: an assignment, and a small Hyperband job.

    python -m experiments.second_backend [--trials 6] [--max-resource 9] [--workers 3] [--data-dir DIR]

Both backends do the same work in the same run: some assignments of ten rounds on one gang that is up, then a Hyperband
job on a Ray of its own. That the work was the same shows in the AUCs, which have to agree.
"""

from __future__ import annotations

import io
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console
from rich.table import Table

from experiments.shared.blog import marketing
from experiments.workloads.repeated_trial import RepeatedTrial, Turn
from experiments.workloads.small_job import RANGES, STATIC
from hpo import HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.cli import errors_in_words
from hpo.record import Store
from trainers import XGBoostTrainer
from trainers.channels import open_channels
from trainers.datasets import load

ASSIGNMENTS, ROUNDS, SEED = 3, 10, 1729


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One backend, in seconds.

    Args:
        up: until the first gang was up.
        assignment: of wall time, the median over assignments.
        starting: of it, in which actors start and end.
        job: wall time of the Hyperband job, the start of Ray included.
        billed: worker-seconds of the job by kind.
        best: AUC of its best trial.
        trials: resource and AUC of each trial.
    """

    up: float
    assignment: float
    starting: float
    job: float
    billed: dict[str, float]
    best: float
    trials: list[tuple[int, float | None]]


def serve(trainer: XGBoostTrainer, channels: dict[str, Any], folder: str) -> tuple[float, list[Turn]]:
    """Seconds until a gang was up, and its assignments."""
    began = time.monotonic()
    with trainer.gangs("measure", open_channels(channels)) as gangs:
        trial = RepeatedTrial(gangs, STATIC, ROUNDS, folder, SEED)
        trial.start(trainer.workers)
        up = time.monotonic() - began
        return up, [trial.train() for _ in range(ASSIGNMENTS)]


def measure(backend: str, workers: int, trials: int, max_resource: int, channels: dict[str, Any]) -> Measured:
    """One backend's assignments and job."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters=STATIC, backend=backend)
        up, served = serve(trainer, channels, folder)
        url = f"sqlite:///{folder}/record.db"
        tuner = HyperparameterTuner(
            trainer,
            "validation:auc",
            RANGES,
            strategy="Hyperband",
            strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource, 1, suggestions="random")),
            max_jobs=trials,
            random_seed=SEED,
            storage_path=folder,
            store=url,
            console=Console(file=io.StringIO()),
        )
        began = time.monotonic()
        tuner.fit(channels, job_name="job")
        job = time.monotonic() - began
        summary = tuner.describe()["Summary"]
        with Store(url) as store:
            rows = [(row.resource, row.objective) for row in store.trials("job")]
    return Measured(
        up=up,
        assignment=statistics.median(turn.seconds for turn in served),
        starting=statistics.median(turn.segment.starting_seconds for turn in served),
        job=job,
        billed=summary["worker_seconds"],
        best=summary["best"]["value"],
        trials=rows,
    )


def main(
    trials: int = 6,
    max_resource: int = 9,
    workers: int = 3,
    data_dir: Annotated[str | None, typer.Option()] = None,
) -> None:
    """Measures both and prints them side by side."""
    data = load(marketing(data_dir), data_dir=data_dir)
    channels = {"train": data.train, "validation": data.validation}
    console, found = Console(), {}
    for name in ("native", "xgboost_ray"):
        found[name] = measure(name, workers, trials, max_resource, channels)
        console.print(f"{name}: a job of {found[name].job:.1f} s, load average {os.getloadavg()[0]:.0f}")
    native, other = found.values()
    table = Table(title=f"{len(data.train)} rows, {workers} workers, {os.cpu_count()} cores", box=None)
    for column in ("", *found):
        table.add_column(column, justify="right")
    table.add_row("first gang up, s", f"{native.up:.2f}", f"{other.up:.2f}")
    table.add_row(f"{ROUNDS} rounds, s", f"{native.assignment:.2f}", f"{other.assignment:.2f}")
    table.add_row("of it actors, s", f"{native.starting:.2f}", f"{other.starting:.2f}")
    table.add_row(f"{trials} trials, s", f"{native.job:.1f}", f"{other.job:.1f}")
    for kind, seconds in native.billed.items():
        table.add_row(f"{kind}, worker-s", f"{seconds:.1f}", f"{other.billed[kind]:.1f}")
    table.add_row("best AUC", f"{native.best:.6f}", f"{other.best:.6f}")
    console.print(table)
    console.print(f"The trials are the same: {native.trials == other.trials}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
