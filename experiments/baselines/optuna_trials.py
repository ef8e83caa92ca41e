"""The start-up benchmark's trials in one process, each trained to its end: here without Ray, and with plain Optuna."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import optuna
import xgboost
from ray.train import ScalingConfig

from experiments.baselines.ray_as_documented import ROUNDS
from experiments.one_process import matrices, suggest
from experiments.workloads.warm_gangs import RANGES, SEED, STATIC, TINY_ASSIGNMENTS, assignment, parameters
from hpo.record import TrialRow
from trainers import Channel, XGBoostTrainer
from trainers.datasets import Dataset
from trainers.gangs import Segment, Served


@dataclass(frozen=True, kw_only=True)
class PlainOptuna:
    """The job with Optuna, in seconds.

    Args:
        first_step: since the job began, the rows in memory.
        starts: of each trial, from Optuna's taking it up to its first training step.
        job: as a whole.
        objectives: what each trial reported, by its number; NaN where it failed.
    """

    first_step: float
    starts: list[float]
    job: float
    objectives: list[float]


def starts_in_hand(dataset: Dataset, scratch: str, threads: int) -> list[float]:
    """Seconds from handing an assignment out to its first training step, in this process, for trials of one round."""
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": threads})
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters=STATIC)
    channels = {"train": dataset.train, "validation": dataset.validation}
    starts = []
    opened = {name: Channel.of(frame, name=name) for name, frame in channels.items()}
    with trainer.gangs("in-hand", opened) as gangs:
        gangs.want({0: 1}, None)
        [up] = gangs.events(1.0)
        for number in range(TINY_ASSIGNMENTS):
            began = time.time()
            gangs.assign(up.gang, assignment(f"tiny-{number}", STATIC, SEED, 1, f"{scratch}/hand/{number}"))
            match gangs.events(1.0):
                case [Served(segment=Segment() as segment)]:
                    starts.append(segment.first_step_at - began)
                case other:
                    raise RuntimeError(f"it did not serve, so nothing was measured: {other}")
    return starts


def with_optuna(dataset: Dataset, trials: Sequence[TrialRow], threads: int) -> PlainOptuna:
    """The job as Optuna's users write it: one matrix for all trials, and `xgboost.train` for each.

    Args:
        dataset: its rows.
        trials: whose configurations and seeds are trained.
        threads: for XGBoost.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=SEED))
    for trial in trials:
        study.enqueue_trial(trial.hyperparameters)
    began = time.time()
    train, validation = matrices(dataset, "QuantileDMatrix", threads)
    starts, first_steps = list[float](), list[float]()

    def objective(trial: optuna.Trial) -> float:
        drawn = {name: suggest(trial, name, bounds) for name, bounds in RANGES.items()}
        curve: dict[str, dict[str, list[float]]] = {}
        assert trial.datetime_start is not None, "it runs"
        starts.append((datetime.now() - trial.datetime_start).total_seconds())  # noqa: DTZ005  # As Optuna has it.
        first_steps.append(time.time())
        xgboost.train(
            {**parameters(trials[trial.number], threads), **drawn},
            train,
            num_boost_round=ROUNDS,
            evals=[(validation, "validation")],
            evals_result=curve,
            verbose_eval=False,
        )
        return curve["validation"]["auc"][-1]

    study.optimize(objective, n_trials=len(trials))
    return PlainOptuna(
        first_step=first_steps[0] - began,
        starts=starts,
        job=time.time() - began,
        objectives=[math.nan if trial.value is None else trial.value for trial in study.trials],
    )
