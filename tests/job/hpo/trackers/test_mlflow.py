"""What MLflow's own client finds of a job in a database and on a server, and what happens where there is none."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from mlflow import MlflowClient

from hpo.observers.callbacks import Callbacks
from hpo.trackers import MLflow, tracker
from tests.support.followed import (
    best_configuration,
    follow_repeats,
    start,
)
from tests.support.hpo.trackers.mlflow import _tell, check
from tests.support.refusals import mentions


def test_a_database_holds_the_job_and_its_trials(tmp_path: Path) -> None:
    check(f"sqlite:///{tmp_path}/mlflow.db")


def test_the_best_of_a_job_with_repeats_is_the_mean_of_its_trials(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    controller, said = follow_repeats(MLflow(uri, experiment="churn"))
    assert not said
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("churn")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    parent = runs.pop("job")
    assert runs.keys() == controller.runs.keys()
    objectives = {
        name: run.data.metrics["trial/objective"] for name, run in runs.items() if "trial/objective" in run.data.metrics
    }
    expected = best_configuration(objectives)
    assert {name: parent.data.metrics[f"job/{name}"] for name in expected} == pytest.approx(expected)
    assert objectives[parent.data.tags["warmband.best_trial"]] == parent.data.metrics["job/best_trial_value"]
    for first in range(0, 12, 2):
        one, other = runs[f"job-{first:03d}"], runs[f"job-{first + 1:03d}"]
        assert one.data.params == other.data.params
    summary = json.loads(parent.data.tags["warmband.summary"])
    assert summary["best"]["repeats"]["standard_error"] == pytest.approx(expected["best_standard_error"])


def test_a_server_that_never_answers_costs_the_end_its_deadline_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that takes connections and says nothing."""
    monkeypatch.setattr(tracker, "CLOSE_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said: list[str] = []
        callbacks = Callbacks([MLflow(f"http://me:secret@127.0.0.1:{silent.getsockname()[1]}")], said.append)
        begun = time.monotonic()
        callbacks.job_start(start())
        _tell(callbacks)
        assert time.monotonic() - begun < 25
    [text] = said
    assert text.startswith("warning: ")
    mentions(text, "MLflow", 102, "events")
    assert "secret" not in text
