"""The `hpo` command: what it prints, and the codes it exits with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support.command import run
from tests.support.refusals import mentions


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset lies anywhere."""
    monkeypatch.delenv("WARMBAND_DATA", raising=False)


def test_data_check_of_what_is_generated(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "data", "check", "bank-marketing-synthetic") == 0
    mentions(capsys.readouterr().out, "train", "35,009", 59)


def test_a_forecast_says_what_the_job_would_take_and_runs_none(monkeypatch, capsys, job: Path) -> None:
    here = "  type: xgboost\n  num_workers: 0\n  resources_per_worker: {CPU: 1}\n"
    text = job.read_text().replace("  type: xgboost\n", here)
    job.write_text(text + "cost: {per_worker_hour: 3.6, currency: EUR}\n")
    assert run(monkeypatch, "forecast", str(job), "--set", "cost.max_cost=0.0000001") == 0
    printed = capsys.readouterr().out
    mentions(printed, "rung")
    forecast = next(line for line in printed.splitlines() if "probe" in line)
    assert re.search(r"\b\d+ s\b", forecast)
    assert re.search(r"\b\d+ worker-seconds\b", forecast)
    mentions(forecast, "max_cost", "0.00000010 EUR")
    assert run(monkeypatch, "forecast", str(job), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert [len(said["plan"]["brackets"]), said["forecast"]["source"]] == [1, "probe"]
    expected, at_most = said["forecast"]["expected"], said["forecast"]["at_most"]
    assert 0 < expected["cost"] <= at_most["cost"] == pytest.approx(at_most["worker_seconds"] / 1000)
    with Store() as store:
        assert store.jobs() == []


def test_a_job_whose_every_trial_fails_exits_with_1(monkeypatch, capsys, job: Path) -> None:
    wrong = [
        "trainer.hyperparameters.updater=no_updater",  # Which XGBoost finds only when it trains.
        "tuning.max_jobs=1",
        "trainer.num_workers=0",
    ]
    assert run(monkeypatch, "tune", str(job), *(word for key in wrong for word in ("--set", key))) == 1
    error = capsys.readouterr().err
    assert "\nerror: " in error, "behind the line that the command begins with"
    mentions(error, "tiny", "failed")
    assert "Traceback" not in error
    assert run(monkeypatch, "describe", "tiny") == 0
    mentions(capsys.readouterr().out.splitlines()[0], "tiny", "Failed")
    assert run(monkeypatch, "trials", "tiny") == 0
    assert "tiny-000: " in capsys.readouterr().out
