"""The start-up benchmark's trials with plain Optuna in one process, each trained to its end."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import optuna
import pandas
import xgboost

from experiments.workloads.small_job import RANGES, ROUNDS, SEED, parameters
from hpo import ContinuousParameter, IntegerParameter
from hpo.ranges import ParameterRange
from hpo.record import TrialRow
from trainers.datasets import Dataset


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


def matrices(dataset: Dataset, kind: str, threads: int) -> tuple[xgboost.DMatrix, xgboost.DMatrix]:
    """Training and validation rows as Optuna's trials share them, without the names of columns, which cost time."""
    (x, y), (x_validation, y_validation) = (
        (frame.iloc[:, 1:].to_numpy(np.float32), frame.iloc[:, 0].to_numpy(np.float32))
        for frame in map(pandas.DataFrame, (dataset.train, dataset.validation))
    )
    if kind == "DMatrix":
        return xgboost.DMatrix(x, y, nthread=threads), xgboost.DMatrix(x_validation, y_validation, nthread=threads)
    train = xgboost.QuantileDMatrix(x, y, nthread=threads)
    return train, xgboost.QuantileDMatrix(x_validation, y_validation, nthread=threads, ref=train)


def suggest(trial: optuna.Trial, name: str, bounds: ParameterRange) -> float:
    """One hyperparameter in Optuna's own form."""
    if isinstance(bounds, IntegerParameter):
        return trial.suggest_int(name, int(bounds.min_value), int(bounds.max_value))
    assert isinstance(bounds, ContinuousParameter)
    return trial.suggest_float(name, bounds.min_value, bounds.max_value)


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
