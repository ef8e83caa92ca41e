"""Checks of a job's runs in MLflow."""

from __future__ import annotations

import sys
import time

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from hpo.observers.callbacks import Callbacks, JobEnd, TrialEnd, TrialInfo
from hpo.search.trial import status_of
from hpo.trackers import MLflow
from hpo.trackers.mlflow import STATUS, Keys
from tests.support.followed import (
    DIVERGING,
    FAILING,
    ODD,
    STATIC,
    follow,
    start,
)
from tests.support.simulated import METRIC
from trainers.gangs.messages import Report

LARGEST = sys.float_info.max
"""MLflow's infinity."""


def check(uri: str) -> None:
    """Runs a job, and compares what MLflow has with what it did."""
    controller, reported, said = follow(MLflow(uri, experiment="churn"))
    assert not said
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("churn")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert runs.keys() == {"job", *controller.runs}
    parent = runs.pop("job")
    best = controller.best()
    assert best is not None
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["job/best"] == best.value
    assert parent.data.metrics["job/worker_seconds"] == pytest.approx(controller.ledger.total)
    assert parent.data.tags["warmband.best_trial"] == best.id
    assert parent.data.tags["team"] == "growth"
    for name, run in runs.items():
        _check_trial(client, run, parent, controller.runs[name], reported.get(name, []))
    _check_a_job_that_breaks_off(uri, client)


def _check_a_job_that_breaks_off(uri: str, client: MlflowClient) -> None:
    """Check that a failed job leaves no run in progress."""
    callbacks = Callbacks([MLflow(uri, experiment="broken")], pytest.fail)
    callbacks.job_start(start(name="job-2"))
    trial = TrialInfo(id="job-2-000", number=0, hyperparameters={"eta": 0.5}, bracket=0)
    callbacks._call("on_trial_report", trial, Report(step=1, metrics={METRIC: 0.5}))
    callbacks.job_end(JobEnd(name="job-2", status="Failed", reason="every gang was lost", summary={}))
    experiment = client.get_experiment_by_name("broken")
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert {name: run.info.status for name, run in found.items()} == {"job-2": "FAILED", "job-2-000": "KILLED"}
    assert found["job-2"].data.tags["warmband.reason"] == "every gang was lost"


def _check_trial(client: MlflowClient, found: Run, parent: Run, run, reports: list[Report]) -> None:
    assert found.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert found.info.status == STATUS[status_of(run)]
    assert found.data.tags["warmband.status"] == status_of(run)
    assert found.data.params == {
        "num_round": "3",
        "objective": STATIC["objective"],
        "seed": "null",
        "monotone": "[1, 0]",
        "eta": str(run.hyperparameters["eta"]),
    }
    for metric, key in ((METRIC, METRIC), (ODD, Keys().key(ODD)), ("huge", "huge")):
        history = [(each.step, each.value) for each in client.get_metric_history(found.info.run_id, key)]
        expected = [(each.step, min(each.metrics[metric], LARGEST)) for each in reports]
        assert repr(sorted(history)) == repr(expected)
    assert found.data.metrics["trial/resource"] == run.resource
    if run.id in (FAILING, DIVERGING):
        assert "trial/objective" not in found.data.metrics
        assert found.data.tags["warmband.failure"] == (run.failure or run.diverged)
    else:
        assert found.data.metrics["trial/objective"] == run.value


def _tell(callbacks: Callbacks) -> None:
    """Tells what a job's loop would, until the end; no call takes long, save the last."""
    trial = TrialInfo(id="job-2-000", number=0, hyperparameters={"eta": 0.5}, bracket=0)
    for step in range(1, 100):
        begun = time.monotonic()
        callbacks._call("on_trial_report", trial, Report(step=step, metrics={METRIC: 0.5}))
        assert time.monotonic() - begun < 25  # What it does not wait for takes 30 s.
    end = TrialEnd(
        status="Completed",
        objective=0.5,
        best_objective=0.5,
        resource=99,
        failure="",
        checkpoint="",
        worker_seconds=1.0,
    )
    callbacks._call("on_trial_end", trial, end)
    callbacks.job_end(JobEnd(name="job-2", status="Completed", reason="", summary={}))
