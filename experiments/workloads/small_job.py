"""The job of the start-up benchmark: its trials, rows and Ray, the same for every way to run it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import ray

from experiments.shared import blog
from hpo.record import TrialRow
from hpo.search import derive_seed
from trainers import Channel
from trainers.datasets import Dataset
from trainers.gangs import Assignment
from trainers.xgboost import booster_parameters

TRIALS, AT_ONCE, SEED = 30, 4, 1729
WORKERS, ROUNDS = 3, 10
DRIVER = "TRAIN_DRIVER_RESOURCE"
STATIC = {"objective": "binary:logistic", "eval_metric": "auc"}
RANGES = {name: bounds for name, bounds in blog.RANGES.items() if name != "num_round"}


def start_ray(at_once: int) -> None:
    """Starts Ray as the tuner does, with as many logical CPUs as the workers of all trials at once."""
    ray.init(
        address="local",
        num_cpus=max(WORKERS * at_once, os.cpu_count() or 1),
        resources={DRIVER: 1.0},
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )


def place(dataset: Dataset) -> dict[str, Any]:
    """The rows in Ray's object store, a shard a worker."""
    channels = {"train": dataset.train, "validation": dataset.validation}
    return {name: Channel.of(frame, name=name).place(WORKERS) for name, frame in channels.items()}


def assignment(trial: str, hyperparameters: Mapping[str, Any], seed: int, stop: int, save_to: str) -> Assignment:
    """A whole trial of `stop` rounds."""
    return Assignment(
        trial_id=trial,
        hyperparameters=dict(hyperparameters),
        seed=seed,
        start=0,
        stop=stop,
        checkpoint=None,
        save_to=save_to,
    )


def parameters(trial: TrialRow, threads: int = 1) -> dict[str, Any]:
    """What XGBoost is given for a trial here, seed and threads included, for the other ways to give it too."""
    seed = derive_seed(SEED, trial.number)
    return booster_parameters(
        assignment(trial.trial_id, STATIC | trial.hyperparameters, seed, ROUNDS, ""), cpus=threads
    )
