"""A tuner that runs schedulers of Ray Tune."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig
from ray.tune.schedulers import ASHAScheduler
from rich.console import Console

from hpo import CategoricalParameter, ContinuousParameter, HyperparameterTuner, IntegerParameter
from tests.support.driving import CHANNELS, answer
from trainers import XGBoostTrainer

ASHA = (ASHAScheduler, {"max_t": 9, "grace_period": 1, "reduction_factor": 3})


def tuner(
    folder: Path, callbacks: Any = (), *, rounds: int | None = 9, workers: int = 0, **options: Any
) -> HyperparameterTuner:
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": rounds},
        ),
        "validation:auc",
        {
            "eta": ContinuousParameter(0.01, 1, "Logarithmic"),
            "max_depth": IntegerParameter(1, 8),
            "booster": CategoricalParameter(["gbtree", "dart"]),
        },
        storage_path=str(folder),
        callbacks=callbacks,
        **{
            "random_seed": 1729,
            "max_jobs": 9,
            "store": f"sqlite:///{folder}/record.db",
            "console": Console(file=io.StringIO()),
            **options,
        },
    )


def fitted(folder: Path, **options: Any) -> dict[str, Any]:
    tuner(folder, **options).fit(CHANNELS, job_name="job")
    return answer(folder, "job")


def units(found: dict[str, Any]) -> list[int]:
    return [resource for name, _, resource, *_ in found["trials"] if name != "untuned"]
