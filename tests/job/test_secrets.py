"""Planted secrets: a job uses a password, keys and a token, and none of them is found anywhere afterwards."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.record import Store
from hpo.record.database import open_engine, shown
from tests.support.driving import CHANNELS
from tests.support.listed import hpo
from tests.support.refusals import mentions
from trainers import ConfigurationError, ScalingConfig, TorchTrainer, TrainContext, WarmbandError


@pytest.mark.parametrize("given", ["me:pl@anted@host/db", "host/db?user=me&password=anted", "me:pl/anted@host/db"])
def test_a_store_s_url_is_shown_without_its_password(given: str) -> None:
    try:
        told = shown(open_engine(f"postgresql://{given}").url)
    except ConfigurationError as refused:
        told = str(refused)
        mentions(told, "@", "%40")
    assert "anted" not in told


def cannot_connect(context: TrainContext) -> None:
    raise OSError("cannot open 'postgresql://me:planted@host/rows?password=planted'")


def test_the_password_in_a_program_s_error_is_shown_nowhere(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    out = io.StringIO()
    tuner = HyperparameterTuner(
        TorchTrainer(cannot_connect, scaling=ScalingConfig(num_workers=0), hyperparameters={"epochs": 1}),
        "validation:loss",
        {"lr": ContinuousParameter(0.1, 1)},
        strategy="Random",
        max_jobs=2,
        console=Console(file=out),
    )
    with pytest.raises(WarmbandError) as failed:
        tuner.fit(CHANNELS, job_name="job")
    with Store() as store:
        rows: list[Any] = [*store.trials("job"), store.job("job"), *store.lines("job")]
        assert "***@host" in store.job("job").reason
        assert all("***@host" in row.failure_reason and "***@host" in row.traceback for row in store.trials("job"))
    shown = [hpo(command, "job", columns=10_000) for command in ("describe", "logs")]
    said = [out.getvalue(), str(failed.value), repr(rows), *shown]
    said += [json.dumps(tuner.describe(), default=str), caplog.text]
    assert not [text for text in said if "planted" in text]
