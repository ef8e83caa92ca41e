"""What `backend` and `ray_params` may be, and that a trainer keeps them wherever it goes."""

from __future__ import annotations

import subprocess
import sys

NATIVE = """
import sys
from ray.train import ScalingConfig
import hpo, hpo.cli, hpo.job_file.models, hpo.tuner
from trainers import XGBoostTrainer
import trainers.gangs.gang, trainers.gangs.ray_gangs, trainers.trainer, trainers.xgboost.trainer

XGBoostTrainer(scaling=ScalingConfig(num_workers=3), hyperparameters={"eval_metric": "auc", "num_round": 2})
XGBoostTrainer(scaling=ScalingConfig(num_workers=3), backend="xgboost_ray")
theirs = ("xgboost_ray.", "trainers.xgboost.ray_backend.")
loaded = [name for name in sys.modules if f"{name}.".startswith(theirs) and name != "trainers.xgboost.ray_backend"]
assert loaded == ["trainers.xgboost.ray_backend.options"], loaded
"""


def test_asking_for_either_backend_imports_nothing_of_xgboost_ray_here() -> None:
    subprocess.run([sys.executable, "-c", NATIVE], check=True, timeout=120)
