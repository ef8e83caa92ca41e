"""A small problem of `experiments.tune_distributed`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ray.train import ScalingConfig

from experiments.shared.problems import Problem, problems
from experiments.shared.published import Options
from tests.support.simulated import METRIC
from trainers import XGBoostTrainer
from trainers.datasets import Dataset, load

AIM = {"objective_type": "Maximize", "objective_value": "last", "objective_metric_name": METRIC}


def small(tmp_path: Path, **hyperparameters: object) -> Problem:
    """XGBoost in hand, 9 configurations of at most 9 rounds."""
    return replace(
        problems(Options(quick=True, out=tmp_path))["xgboost"],
        jobs=9,
        parallel=1,
        max_resource=9,
        units=9,
        trainer=lambda workers, units: XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={
                "objective": "binary:logistic",
                "eval_metric": "auc",
                "num_round": units,
                **hyperparameters,
            },
        ),
    )


def few() -> Dataset:
    """Rows that train in no time."""
    dataset = load("bank-marketing-synthetic")
    return replace(dataset, train=dataset.train[:500], validation=dataset.validation[:200])
