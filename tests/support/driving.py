"""A job whose driver dies, and what it answers."""

from __future__ import annotations

import io
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from ray.train import ScalingConfig
from rich.console import Console

from hpo import Callback, ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import JobRow, Store
from tests.support.processes import python
from trainers import XGBoostTrainer, storage

ROWS = np.random.default_rng(7)
FEATURES = ROWS.normal(size=(400, 4)).astype(np.float32)
FRAME = pandas.DataFrame(FEATURES, columns=["a", "b", "c", "d"])
FRAME.insert(0, "y", (FEATURES @ [1, -1, 0.5, 0] + ROWS.normal(size=400) > 0).astype(int))
CHANNELS = {"train": FRAME[:300], "validation": FRAME[300:]}


class Counting(Callback):
    """Does something to the job at its n-th report, and counts what it is told."""

    def __init__(self, at: int = 10**9, act: Callable[[], None] = lambda: None) -> None:
        self.at, self.act = at, act
        self.reports = 0
        self.ends: list[tuple[str, str]] = []

    def on_trial_report(self, trial: Any, report: Any) -> None:
        self.reports += 1
        if self.reports == self.at:
            self.act()

    def on_trial_end(self, trial: Any, end: Any) -> None:
        self.ends.append((trial.id, end.status))


def tuner(folder: Path, callbacks: tuple[Callback, ...] = (), workers: int = 0, **options: Any) -> HyperparameterTuner:
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc"},
        ),
        "validation:auc",
        {"eta": ContinuousParameter(0.05, 1), "subsample": ContinuousParameter(0.5, 1)},
        random_seed=1729,
        storage_path=str(folder),
        callbacks=callbacks,
        **{
            "console": Console(file=io.StringIO()),
            "strategy": "Hyperband",
            "strategy_config": StrategyConfig(
                HyperbandStrategyConfig(max_resource=9, min_resource=1, suggestions="random")
            ),
            "max_jobs": 9,
            "store": f"sqlite:///{folder}/record.db",
            **options,
        },
    )


def answer(folder: Path, name: str) -> dict[str, Any]:
    """Return the parts of a job that have to be equal, down to the winner's bytes."""
    with Store(f"sqlite:///{folder}/record.db") as store:
        job, trials = store.job(name), store.trials(name)
        reports = {(row.trial_id, row.step): row.metrics for row in store.reports(name)}
    return {
        "status": (job.status, job.reason),
        "trials": [
            (row.trial_id.removeprefix(name), row.status, row.resource, row.objective, row.hyperparameters)
            for row in trials
        ],
        "reports": {(trial.removeprefix(name), step): metrics for (trial, step), metrics in reports.items()},
        "best": (job.summary["best"]["trial"].removeprefix(name), job.summary["best"]["value"]),
        "model": storage.read(job.summary["best"]["checkpoint"]),
        "untuned": job.summary["untuned"],
        "used": job.summary["resource_used"],
        "kept": sorted(row.trial_id.removeprefix(name) for row in trials if row.checkpoint),
    }


def row(folder: Path) -> JobRow:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return store.job("job")


SCRIPT = """
    import os, sys
    from pathlib import Path
    from tests.support.driving import CHANNELS, Counting, row, tuner
    from tests.support.rows import until

    folder, at, number, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])

    def signalled():
        until(lambda: bool(row(folder).summary.get("runs")))
        os.kill(os.getpid(), number)

    counting = Counting(at, signalled)
    tuner(folder, (counting,), workers).fit(CHANNELS, job_name="job")
"""


def run_until(
    folder: Path, at: int, number: signal.Signals, workers: int = 0, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the job in a process of its own, which sends itself a signal at its `at`-th report.

    Its record has heard of the run by then: rows wait a quarter of a second, and some runs reach the report sooner.
    """
    arguments = [str(folder), str(at), str(int(number)), str(workers)]
    return python("-c", SCRIPT, *arguments, environment=environment)
