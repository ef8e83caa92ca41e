"""A tuner with Autotune over boosted trees."""

from __future__ import annotations

from typing import Any

from hpo import HyperparameterTuner
from trainers import ScalingConfig, XGBoostTrainer
from trainers.trainer import Trainer

STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 27, "eta": 0.3, "subsample": 0.8}
IN_HAND = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})


def boosting(**static: Any) -> XGBoostTrainer:
    values = {name: value for name, value in {**STATIC, **static}.items() if value is not None}
    return XGBoostTrainer(scaling=IN_HAND, hyperparameters=values)


def make(trainer: Trainer | None = None, ranges: Any = None, **options: Any) -> HyperparameterTuner:
    settings = {"autotune": True, "console": False, **options}
    return HyperparameterTuner(trainer or boosting(), "validation:auc", ranges, **settings)
