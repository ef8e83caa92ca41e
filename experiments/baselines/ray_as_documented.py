"""The start-up benchmark's trials as Ray documents them: a Ray Train run for each, under Ray Tune."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
import ray.train
import xgboost
from ray import tune
from ray.train import Checkpoint, ScalingConfig
from ray.train.xgboost import XGBoostTrainer as RayXGBoostTrainer
from ray.tune.integration.ray_train import TuneReportCallback
from ray.tune.schedulers import FIFOScheduler

from experiments.workloads.small_job import DRIVER, ROUNDS, WORKERS, place, start_ray
from trainers.datasets import Dataset
from trainers.gangs import POLL_SECONDS

ENVIRONMENT = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": POLL_SECONDS,
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    "RAY_worker_niceness": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
}
"""Variables that give Ray Train the polls and the priority that gangs have, and start no worker ahead of need."""


@dataclass(frozen=True, kw_only=True)
class Documented:
    """A job as Ray documents it, in seconds.

    Args:
        at_once: how many trials ran at once.
        first_step: from its beginning, Ray's start included.
        starts: of each trial, from Tune taking it up to rank 0's first training step, in the order of taking up.
        job: as a whole.
        ray: the part of it in `ray.init` and `ray.shutdown`.
        objectives: what each trial reported, by its number.
    """

    at_once: int
    first_step: float
    starts: list[float]
    job: float
    ray: float
    objectives: list[float]


def train_loop(config: dict[str, Any]) -> None:
    """What each worker runs for one trial."""
    rank, world_size = ray.train.get_context().get_world_rank(), ray.train.get_context().get_world_size()
    train, validation = (
        config["channels"]["train"].read(rank, world_size),
        config["channels"]["validation"].read_whole(),
    )
    matrix = xgboost.QuantileDMatrix(train.features, train.labels, nthread=1)
    evaluated = xgboost.QuantileDMatrix(validation.features, validation.labels, nthread=1, ref=matrix)
    curve: dict[str, dict[str, list[float]]] = {}
    first_step_at = time.time()
    booster = xgboost.train(
        config["parameters"],
        matrix,
        num_boost_round=config["rounds"],
        evals=[(evaluated, "validation")],
        evals_result=curve,
        verbose_eval=False,
    )
    metrics = {"objective": curve["validation"]["auc"][-1], "first_step_at": first_step_at}
    with tempfile.TemporaryDirectory() as folder:
        if rank == 0:
            booster.save_model(f"{folder}/model.ubj")
        ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder) if rank == 0 else None)


def train_driver(config: dict[str, Any], trials: Sequence[dict[str, Any]], channels: Any, path: str) -> None:
    """What Ray Tune runs for one trial: a Ray Train run of its own."""
    RayXGBoostTrainer(
        train_loop,
        train_loop_config={"parameters": trials[config["number"]], "rounds": ROUNDS, "channels": channels},
        scaling_config=ScalingConfig(num_workers=WORKERS),
        run_config=ray.train.RunConfig(
            name=f"train-{tune.get_context().get_trial_id()}",
            storage_path=path,
            callbacks=[TuneReportCallback()],  # type: ignore[list-item]  # Ray is untyped here
        ),
    ).fit()


class NotingScheduler(FIFOScheduler):
    """Ray Tune's default scheduler, which also notes when Tune takes each trial up."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Ray is untyped here
        self.taken_up: dict[str, float] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        self.taken_up[trial.trial_id] = time.time()


def as_documented(trials: Sequence[dict[str, Any]], dataset: Dataset, at_once: int, scratch: str) -> Documented:
    """Runs a job of trials with these XGBoost parameters."""
    began = time.time()
    start_ray(at_once)
    inside = time.time()
    try:
        scheduler = NotingScheduler()
        driver = tune.with_parameters(
            train_driver, trials=list(trials), channels=place(dataset), path=f"{scratch}/train"
        )
        results = tune.Tuner(
            tune.with_resources(driver, {DRIVER: 0.01}),
            param_space={"number": tune.grid_search(list(range(len(trials))))},
            tune_config=tune.TuneConfig(scheduler=scheduler, max_concurrent_trials=at_once),
            run_config=tune.RunConfig(name="documented", storage_path=f"{scratch}/tune", verbose=0),
        ).fit()
        for error in results.errors:
            raise error
        reports = [results[index].metrics or {} for index in range(len(results))]
        left = time.time()
    finally:
        ray.shutdown()
    ended = time.time()
    by_number = sorted(reports, key=lambda report: report["config"]["number"])
    in_order = sorted(reports, key=lambda report: scheduler.taken_up[report["trial_id"]])
    return Documented(
        at_once=at_once,
        first_step=min(report["first_step_at"] for report in reports) - began,
        starts=[report["first_step_at"] - scheduler.taken_up[report["trial_id"]] for report in in_order],
        job=ended - began,
        ray=(inside - began) + (ended - left),
        objectives=[report["objective"] for report in by_number],
    )
