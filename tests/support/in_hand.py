"""Jobs in this process."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from ray.train import ScalingConfig
from rich.console import Console

from hpo import HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support.boosting import CHANNELS, RANGES, STATIC
from trainers import XGBoostTrainer, storage


@dataclass(frozen=True)
class Answer:
    """The decisions of a job, and its models."""

    resources: dict[str, int]
    values: dict[str, float]
    best: str
    models: dict[str, bytes]
    printed: str


def answer(workers: int, folder: Path, threads: int = 1) -> Answer:
    """The answer of the README's job, all its 30 trials, with so many workers."""
    printed = io.StringIO()
    tuner = HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": threads}), hyperparameters=STATIC
        ),
        "validation:auc",
        RANGES,
        strategy="Hyperband",
        max_jobs=30,
        max_parallel_jobs=2,
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=30, min_resource=1, suggestions="random")),
        random_seed=1729,
        storage_path=str(folder),
        num_to_keep=None,
        store=f"sqlite:///{folder}/store.db",
        console=Console(file=printed, width=120),
    )
    tuner.fit(CHANNELS, job_name="job")
    with Store(f"sqlite:///{folder}/store.db") as store:
        trials = store.trials("job")
    return Answer(
        resources={trial.trial_id: trial.resource for trial in trials},
        values={trial.trial_id: trial.objective or 0.0 for trial in trials},
        best=tuner.best_training_job(),
        models={trial.trial_id: storage.read(trial.checkpoint) for trial in trials},
        printed=printed.getvalue(),
    )
