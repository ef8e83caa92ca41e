"""A trained job for endpoints."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost
from rich.console import Console

from hpo import TrainingJob
from trainers import ScalingConfig, XGBoostTrainer

RANDOM = np.random.default_rng(6)
FRAME = pd.DataFrame(RANDOM.normal(size=(300, 3)).astype(np.float32), columns=["a", "b", "c"])
TRAIN = FRAME.assign(y=(FRAME["a"] > 0).astype(np.float32))[["y", "a", "b", "c"]]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> TrainingJob:
    folder = tmp_path_factory.mktemp("job")
    made = TrainingJob(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3},
        ),
        store=f"sqlite:///{folder}/record.db",
        storage_path=str(folder / "files"),
        console=Console(quiet=True),
    )
    made.fit({"train": TRAIN}, "churn")
    return made


def expected(job: TrainingJob) -> np.ndarray:
    return job.model().predict(xgboost.DMatrix(FRAME))
