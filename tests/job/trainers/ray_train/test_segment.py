"""A Ray Train function from rung to rung: files, repeated reports, early ends, halts and errors; without Ray."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from typing import Any

import pytest
import ray.train
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.record.store import Store
from hpo.report import JobData, job_page
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.ray_train_job import trainer
from tests.support.refusals import refuses
from trainers import ConfigurationError, DivergedError, RayTrainTrainer, TrialError
from trainers.gangs.messages import Assignment


def run(function: Any, *assignments: Assignment) -> list:
    return serve_alone(RayTrainTrainer(trainer(0, function)).program({}), *assignments)


@pytest.mark.parametrize(
    ("function", "error", "names"),
    [
        (lambda config: None, TrialError, "ray.train.report(metrics)"),
        (lambda config: exit(3), TrialError, ("sys.exit(3)", "exception")),
        (lambda config: ray.train.report([1]), TrialError, ("ray.train.report", "metrics", "[1]", "dict")),
        (lambda config: ray.train.report({"loss": 10**400}), TrialError, ("ray.train.report", "loss", "float")),
        (lambda config: ray.train.get_dataset_shard("train"), ConfigurationError, "datasets={'train'"),
        (lambda config: 1 / config["lr"], ZeroDivisionError, "zero"),
        (lambda config: ray.train.report({"loss": float("nan")}), DivergedError, ("loss", "nan", "1")),
    ],
)
def test_what_is_wrong_is_the_trial_s_error(tmp_path, function, error, names):
    wrong = replace(assignment(tmp_path, lr=0), objective="loss")
    [found] = run(function, wrong)
    with refuses(error, field=names):
        raise found


def test_a_job_without_channels_is_told_reported_and_attached_to(tmp_path):
    store = f"sqlite:///{tmp_path}/store.db"
    printed = io.StringIO()
    tuner = HyperparameterTuner(
        trainer(0),
        "accuracy",
        {"lr": ContinuousParameter(0.0001, 0.1, "Logarithmic")},
        strategy="Hyperband",
        max_jobs=4,
        random_seed=3,
        storage_path=str(tmp_path),
        store=store,
        console=Console(file=printed, width=160),
    )
    tuner.fit(job_name="job")
    assert "accuracy" in printed.getvalue()
    with Store(store) as opened:
        assert "accuracy" in job_page(JobData.read(opened, "job")).html()
    attached = HyperparameterTuner.attach("job", store=store)
    assert attached.describe()["HyperParameterTuningJobStatus"] == "Completed"
    best = attached.best_estimator().model()
    with best.as_directory() as folder:
        assert os.listdir(folder) == ["model.pt"]
