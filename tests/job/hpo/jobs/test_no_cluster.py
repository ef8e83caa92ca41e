"""A job whose cluster does not answer keeps neither its name nor its files; what has begun keeps both."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.jobs import begin
from hpo.record.store import Store, TrialRow
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, ScalingConfig, XGBoostTrainer
from trainers.errors import ConnectError, NoJobError

ROWS = pandas.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["y", "a", "b"])
ROWS["y"] = (ROWS["y"] > 0).astype(int)
CHANNELS = {"train": ROWS[:40], "validation": ROWS[40:]}


def tuner(printed: io.StringIO, tmp_path: Path) -> HyperparameterTuner:
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 2},
        ),
        "validation:auc",
        {"eta": ContinuousParameter(0.1, 1)},
        strategy="Random",
        store=f"sqlite:///{tmp_path}/record.db",
        storage_path=str(tmp_path / "jobs"),
        console=Console(file=printed, width=200),
    )


def test_a_job_that_could_not_connect_does_not_keep_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()

    def away(*_: Any, **__: Any) -> None:
        raise ConnectError("RAY_ADDRESS='10.0.0.9:6379': nothing answers there")

    with monkeypatch.context() as patched:
        patched.setattr(begin.driver, "run", away)
        with pytest.raises(ConnectError):
            tuner(printed, tmp_path).fit(CHANNELS, job_name="churn")
    mentions(printed.getvalue(), "churn", "removed", "record")
    with Store(f"sqlite:///{tmp_path}/record.db") as store, pytest.raises(NoJobError):
        store.job("churn")
    tuner(printed, tmp_path).fit(CHANNELS, job_name="churn")
    with refuses(ConfigurationError, field="churn", remedy=("--name", "job_name", "hpo describe churn")):
        tuner(printed, tmp_path).fit(CHANNELS, job_name="churn")


def test_one_that_had_begun_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/record.db"

    def lost(settings: Any, row: Any, *_: Any, **__: Any) -> None:
        with Store(url) as store, store.writer(row.name, {}) as writer:
            writer.trial(TrialRow(job=row.name, trial_id=f"{row.name}-000", number=0, hyperparameters={}))
        raise ConnectError("the head has gone")

    monkeypatch.setattr(begin.driver, "run", lost)
    with pytest.raises(ConnectError):
        tuner(io.StringIO(), tmp_path).fit(CHANNELS, job_name="churn")
    with Store(url) as store:
        assert len(store.trials("churn")) == 1
