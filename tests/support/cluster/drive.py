"""A tuning job as a script, run beside a cluster's head: `python -m tests.support.cluster.drive JSON`."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from ray.train import ScalingConfig
from rich.console import Console

from hpo import (
    Callback,
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.strategies.hyperband import Cut
from tests.support.cluster.ray_machines import until
from tests.support.cluster.slow_training import train
from trainers import TorchTrainer, XGBoostTrainer, storage

ROUNDS = 9
HOLD_SECONDS = 300.0

XGBOOST = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3, "subsample": 0.8}


def table(rows: int, seed: int) -> pandas.DataFrame:
    """Rows whose label, the first column, a model can learn."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 8)).astype(np.float32)
    score = features[:, 0] + features[:, 1] * features[:, 2] + random.normal(scale=0.5, size=rows)
    frame = pandas.DataFrame(features, columns=[f"f{number}" for number in range(8)])
    frame.insert(0, "label", (score > 0).astype(np.float32))
    return frame


def gates(job: str, rung: int) -> tuple[Path, Path]:
    """The files that say that a job is held at its `rung`-th rung, and that it may go on."""
    return Path(f"{job}.held{rung}"), Path(f"{job}.goes{rung}")


class Hold(Callback):
    """Holds the job up at each of the first rungs that are decided, until a file is there.

    Its gang is up then, and idle; the test that it waits for sees to what the next assignment meets.

    Args:
        job: what the files' names begin with.
        rungs: how many it is held at.
    """

    def __init__(self, job: str, rungs: int) -> None:
        self._job = job
        self._left = iter(range(1, rungs + 1))

    def on_rung(self, cut: Cut) -> None:
        """Says that it is held, by another file, and waits."""
        if rung := next(self._left, None):
            held, goes = gates(self._job, rung)
            held.touch()
            until(goes.exists, "the test to go on", HOLD_SECONDS)


def tuner(job: dict[str, Any], console: Console) -> HyperparameterTuner:
    """The job of a test, with `store` and `storage_path` among its values."""
    scaling = ScalingConfig(
        num_workers=tuple(workers) if isinstance(workers := job.get("workers", 2), list) else workers,
        placement_strategy=job.get("placement", "PACK"),
        resources_per_worker={"CPU": job.get("cpus", 1)},
    )
    ranges: dict[str, Any] = {"eta": ContinuousParameter(0.01, 0.5)}
    if "sizes" in job:
        ranges["num_workers"] = CategoricalParameter(job["sizes"])
    if job.get("trainer") == "torch":
        static = {"global_batch_size": 60, "eta": 0.1, **job["static"]}
        trainer: Any = TorchTrainer(train, scaling=scaling, hyperparameters=static, report_timeout_s=300)
    else:
        ranges["max_depth"] = IntegerParameter(1, 6)
        trainer = XGBoostTrainer(scaling=scaling, hyperparameters=XGBOOST)
    return HyperparameterTuner(
        trainer,
        "validation:auc",
        ranges,
        strategy="Hyperband",
        strategy_config=StrategyConfig(
            HyperbandStrategyConfig(max_resource=ROUNDS, min_resource=1, suggestions="random")
        ),
        max_jobs=job.get("trials", 6),
        max_parallel_jobs=job.get("at_once", 1),
        random_seed=7,
        store=job["store"],
        storage_path=job.get("storage_path"),
        console=console,
        callbacks=[Hold(*job["hold"])] if "hold" in job else [],
        verbose=job.get("verbose", False),
    )


def main() -> None:
    """Runs the job, and prints in the last line which model is the best."""
    job = json.loads(sys.argv[1])
    inputs = job.get("inputs") or {"train": table(600, 1), "validation": table(300, 2)}
    made = tuner(job, Console(width=200))
    made.fit(inputs, job_name=job["name"])
    checkpoint = made.best_estimator().checkpoint
    model = hashlib.sha256(storage.read(checkpoint)).hexdigest()
    sys.stdout.write(f"{json.dumps({'checkpoint': checkpoint, 'model': model})}\n")


if __name__ == "__main__":
    main()
