"""A tuning job of XGBoost with timed workers: its worker-seconds by kind, and its memory."""

from __future__ import annotations

import json
import math
import os
import statistics
from dataclasses import dataclass
from pathlib import Path

import pandas
from ray.train import ScalingConfig
from rich.console import Console

from experiments.workloads.memory import MemoryWatch
from experiments.workloads.timed_trainer import FOLDER, TimedTrainer
from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, IntegerParameter, StrategyConfig
from hpo.ranges import ParameterRange
from hpo.record import Store
from hpo.sagemaker import tuned_trials
from trainers.datasets import Dataset, load

JOB, SEED, AT_ONCE = "efficiency", 1729, 1
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "tree_method": "hist"}
RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.01, 1),
    "min_child_weight": ContinuousParameter(1, 10),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(3, 10),
}


@dataclass(frozen=True, kw_only=True)
class Share:
    """Where a job's billed worker-seconds went.

    Args:
        rows: of the train channel.
        workers: of its gang.
        rounds: in all trials and the un-tuned run.
        inside: worker-seconds within XGBoost's update and evaluation.
        billed: worker-seconds by kind.
    """

    rows: int
    workers: int
    rounds: int
    inside: float
    billed: dict[str, float]

    @property
    def whole(self) -> float:
        """The share of all billed worker-seconds."""
        return self.inside / sum(self.billed.values())

    @property
    def since_up(self) -> float:
        """The share of those billed since the gang was up."""
        return self.inside / (sum(self.billed.values()) - self.billed.get("starting", 0.0))

    @property
    def round_seconds(self) -> float:
        """Of one round, in XGBoost."""
        return self.inside / self.workers / self.rounds


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a job held, in bytes.

    Args:
        rows: of the train channel.
        workers: of its gang.
        shard: float32 features and labels of one worker's rows.
        steady: own memory of each worker while the last trials trained.
        peak: of all its processes and the object store at most.
        store: of the object store at most.
        driver: own memory of the driver after the tenth and after the last trial.
        trials: between these two.
    """

    rows: int
    workers: int
    shard: int
    steady: list[int]
    peak: int
    store: int
    driver: tuple[int, int]
    trials: int


def tune(dataset: Dataset, scratch: str, *, workers: int, trials: int, rounds: int, strategy: str) -> str:
    """Runs a job whose workers note what they do; returns the URL of its store."""
    url = f"sqlite:///{scratch}/store.db"
    notes = Path(scratch, "notes")
    notes.mkdir(parents=True)
    os.environ[FOLDER] = str(notes)
    hyperband = StrategyConfig(HyperbandStrategyConfig(max_resource=rounds, min_resource=1, suggestions="random"))
    tuner = HyperparameterTuner(
        TimedTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters={**STATIC, "num_round": rounds}),
        "validation:auc",
        RANGES,
        strategy=strategy,
        strategy_config=hyperband if strategy == "Hyperband" else None,
        max_jobs=trials,
        max_parallel_jobs=AT_ONCE,
        random_seed=SEED,
        storage_path=f"{scratch}/jobs",
        store=url,
        console=Console(quiet=True),
    )
    tuner.fit({"train": dataset.train, "validation": dataset.validation}, job_name=JOB)
    return url


def share(
    name: str, data_dir: str | None, repeat: int, *, trials: int, rounds: int, workers: int, scratch: str
) -> Share:
    """Where the worker-seconds of a job go; of Hyperband, with trials of at most so many rounds."""
    dataset = load(name, data_dir=data_dir, repeat=repeat)
    url = tune(dataset, scratch, workers=workers, trials=trials, rounds=rounds, strategy="Hyperband")
    notes = [json.loads(line) for file in Path(scratch, "notes").iterdir() for line in file.open()]
    billed: dict[str, float] = {}
    with Store(url) as store:
        for entry in store.ledger(JOB):
            billed[entry.kind] = billed.get(entry.kind, 0.0) + entry.worker_seconds
    return Share(
        rows=len(dataset.train),
        workers=workers,
        rounds=sum(note["rounds"] for note in notes) // workers,
        inside=sum(note["inside"] for note in notes),
        billed=billed,
    )


def memory(name: str, data_dir: str | None, repeat: int, *, trials: int, workers: int, scratch: str) -> Memory:
    """What a job of short trials holds; in a process that has done nothing else."""
    dataset = load(name, data_dir=data_dir, repeat=repeat)
    with MemoryWatch(Path(scratch, "notes")) as watch:
        url = tune(dataset, scratch, workers=workers, trials=trials, rounds=1, strategy="Random")
    with Store(url) as store:
        ended = sorted(trial.ended_at or math.inf for trial in tuned_trials(store, JOB))
    tenth, last = ended[9], ended[-1]
    up = [sample for sample in watch.samples if len(sample.workers) == workers]
    late = [sample for sample in up if tenth <= sample.at <= last] or up[-1:]  # A quick run may end before the next.
    rows, columns = pandas.DataFrame(dataset.train).shape
    return Memory(
        rows=rows,
        workers=workers,
        shard=4 * rows * columns // workers,
        steady=[int(statistics.median(sample.workers[pid] for sample in late)) for pid in late[0].workers],
        peak=max(sample.together for sample in watch.samples),
        store=max(sample.store for sample in watch.samples),
        driver=(late[0].driver, late[-1].driver),
        trials=trials - 10,
    )
