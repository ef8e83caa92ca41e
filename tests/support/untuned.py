"""Tuners whose trials are all worse than their trainer's own hyperparameters."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from trainers import ScalingConfig, XGBoostTrainer

BAD = {"reg_lambda": ContinuousParameter(1e6, 1e7), "eta": ContinuousParameter(0.001, 0.002)}
"""Ranges without one good value."""


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/record.db"


def bad(folder: Path, *callbacks: Any, metric: str = "auc", said: io.StringIO | None = None, **options: Any) -> Any:
    """A tuner whose ranges are all worse than its trainer's own hyperparameters."""
    static = {"objective": "binary:logistic", "eval_metric": metric, "eta": 0.4, "reg_lambda": 1, "num_round": 6}
    given: dict[str, Any] = {"strategy": "Random", "max_jobs": 3, "random_seed": 5, "num_to_keep": 1, **options}
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
            hyperparameters={**static, **given.pop("static", {})},
        ),
        f"validation:{metric}",
        BAD,
        objective_type="Maximize" if metric == "auc" else "Minimize",
        callbacks=callbacks,
        storage_path=str(folder),
        store=url(folder),
        console=Console(file=said or io.StringIO(), width=120),
        **given,
    )
