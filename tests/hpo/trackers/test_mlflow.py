"""What MLflow's own client finds of a job in a database and on a server, and what happens where there is none."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH, path_not_unique, validate_param_and_metric_name

from hpo.observers.callbacks import Callbacks, JobEnd, TrialEnd, TrialInfo
from hpo.search.trial import status_of
from hpo.trackers import MLflow, tracker
from hpo.trackers.mlflow import STATUS, Keys
from tests.support.followed import (
    DIVERGING,
    FAILING,
    ODD,
    STATIC,
    best_configuration,
    follow,
    follow_repeats,
    start,
)
from tests.support.mlflow_server import end
from tests.support.refusals import mentions
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
    """What was under way then is under way no more."""
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


@pytest.mark.process
@pytest.mark.fault
def test_a_real_server_holds_the_same_and_may_die(server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its death is one warning, and the job goes on."""
    url, running = server
    check(url)
    said: list[str] = []
    callbacks = Callbacks([MLflow(url.replace("//", "//me:secret@"), experiment="dies")], said.append)
    callbacks.job_start(start(name="job-2"))
    client = MlflowClient(tracking_uri=url)
    deadline = time.monotonic() + 60
    while not (found := client.get_experiment_by_name("dies")) or not client.search_runs([found.experiment_id]):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)
    end(running)
    _tell(callbacks)
    assert len(said) == 1
    mentions(said[0], "MLflow")
    assert "secret" not in said[0]


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


def test_a_server_that_is_not_there_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    _, _, said = follow(MLflow(f"http://me:secret@127.0.0.1:{port}"))
    assert len(said) == 1
    mentions(said[0], "MLflow")
    assert "secret" not in said[0]


def test_what_it_is_called_shows_no_password() -> None:
    assert repr(MLflow("https://me:secret@host:5000/x")) == (
        "MLflow(tracking_uri='https://***@host:5000/x', experiment='warmband')"
    )


LONG = st.sampled_from(["a" * 249, "a" * 250, "a" * 251, "b/" * 200])


@given(st.lists(st.text("ab./ _%é\n", max_size=5) | st.text(max_size=5) | LONG, unique=True, max_size=8))
def test_any_names_become_keys_that_mlflow_takes_each_its_own(names: list[str]) -> None:
    keys = Keys()
    found = [keys.key(name) for name in names]
    assert len(set(found)) == len(names)
    assert [keys.key(name) for name in names] == found
    for key in found:
        assert validate_param_and_metric_name(key), key
        assert not path_not_unique(key), key
        assert 0 < len(key) <= MAX_ENTITY_KEY_LENGTH


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (METRIC, METRIC),
        ("train/loss", "train/loss"),
        ("/a//b/", "a/b"),
        ("../../etc", "_/_/etc"),
        (".", "_"),
        ("", "_"),
        ("50%", "50_"),
    ],
)
def test_names_stay_readable(name: str, key: str) -> None:
    assert Keys().key(name) == key
