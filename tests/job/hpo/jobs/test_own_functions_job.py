"""Jobs of XGBoost with an objective and a metric of a user's own: consent, the job file, the record and a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpo import HyperparameterTuner
from hpo.cli import app
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, answer
from tests.support.own_jobs import HERE, RANGES, STATIC, given, interrupted, job_file, status, tuner
from tests.support.refusals import mentions
from trainers import ConfigurationError, XGBoostTrainer

OWN = {"objective_function": "shop.training:logistic", "metric_functions": ["shop.training:wrong"]}


def boosting(folder: Path) -> XGBoostTrainer:
    return XGBoostTrainer(
        scaling=HERE,
        hyperparameters={"eval_metric": STATIC["eval_metric"]},
        objective_function=given(folder, "logistic"),
        metric_functions=[given(folder, "wrong")],
    )


def made(folder: Path) -> HyperparameterTuner:
    settings: dict[str, Any] = {"objective_type": "Minimize"}
    job = tuner(folder, boosting(folder), RANGES, **settings)
    job.objective_metric_name = "validation:wrong"
    return job


def test_a_job_file_names_them_and_consent_is_asked_for(package_folder: Path) -> None:
    tuning = {"objective_metric_name": "validation:wrong", "objective_type": "Minimize"}
    trainer = {"type": "xgboost", "hyperparameters": {"eval_metric": "auc"}, **OWN}
    path = job_file(package_folder, tuning, **trainer)
    refused = CliRunner().invoke(app, ["tune", path])
    assert isinstance(refused.exception, ConfigurationError)
    mentions(
        str(refused.exception),
        *("trainer.objective_function", "shop.training:logistic"),
        *("trainer.metric_functions[0]", "shop.training:wrong"),
        str(package_folder / "shop" / "training.py"),
        "--allow-code",
    )
    assert not (package_folder / "ran").exists()
    done = CliRunner().invoke(app, ["tune", path, "--allow-code"])
    assert done.exception is None, done.output
    assert status() == "Completed"
    best = HyperparameterTuner.attach("job").describe()["Summary"]["best"]
    assert set(best["metrics"]) == {"validation:auc", "validation:wrong"}
    assert best["value"] < 0.4


def test_a_resume_runs_them_with_consent_alone(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(package_folder).fit(CHANNELS, job_name="whole")
    interrupted(made(package_folder))
    assert hpo(monkeypatch, "resume", "job") == 2
    mentions(
        capsys.readouterr().err,
        *("objective_function", "shop.training:logistic"),
        *("metric_functions[0]", "shop.training:wrong"),
        "--allow-code",
    )
    assert not (package_folder / "ran").exists()
    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert status() == "Completed"
    assert answer(package_folder, "job") == answer(package_folder, "whole")
