"""Jobs that the service's own client creates: what is left behind is started, each of a search leaves its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpo import jobs
from hpo.record import Store
from hpo.serve.aws.creating import jobs as creating, read_tables, start_left_behind
from hpo.serve.aws.creating.asked import training_of
from hpo.serve.aws.creating.jobs import REQUEST
from tests.support.hpo.serve.aws.creating import (
    archived_model,
    ended,
    reached,  # noqa: F401  # Fixtures.
    request,
    store_of_files,  # noqa: F401  # Fixtures.
)
from tests.support.rows import sqlite_url

Client = Callable[..., Any]


def test_a_job_that_was_written_and_not_started_is_started(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, url = request(tmp_path), sqlite_url(tmp_path)
    training, inputs = training_of(asked, read_tables(None), url)
    job = jobs.NewJob.of(training.settings.changed(), inputs, "made", url, 63, apart=True)
    replace(job, row=replace(job.row, spec={**job.row.spec, REQUEST: asked})).write()
    start_left_behind(store, url)
    assert store.job("made").lease == "", "it may be under way to its driver"
    monkeypatch.setattr(creating, "LEFT_SECONDS", -1.0)
    start_left_behind(store, url)
    assert ended(store, "made") == "Completed"
    start_left_behind(store, url)  # There is nothing left to do.


def tuning_request(folder: Path, **changed: Any) -> dict[str, Any]:
    training = request(folder)
    name, hyperparameters = training.pop("TrainingJobName"), training.pop("HyperParameters")
    assert name
    rate = {"Name": "eta", "MinValue": "0.01", "MaxValue": "0.5"}
    return {
        "HyperParameterTuningJobName": "tuned",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 7, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {"ContinuousParameterRanges": [rate]},
        },
        "TrainingJobDefinition": {**training, "StaticHyperParameters": hyperparameters, **changed},
    }


def test_each_training_of_a_tuning_job_leaves_its_model(
    client: Client, store: Store, tmp_path: Path, store_of_files: str
) -> None:
    sagemaker = client()
    sagemaker.create_hyper_parameter_tuning_job(**tuning_request(tmp_path))
    assert ended(store, "tuned") == "Completed"
    trials = [trial for trial in store.trials("tuned") if trial.number >= 0]
    assert len(trials) == 7
    assert sum(not trial.checkpoint for trial in trials) == 2, "a job keeps the checkpoints of its best five"
    for trial in trials:
        described = sagemaker.describe_training_job(TrainingJobName=trial.trial_id)
        model = archived_model(store_of_files, described, tmp_path)
        assert model.num_boosted_rounds() == trial.resource
