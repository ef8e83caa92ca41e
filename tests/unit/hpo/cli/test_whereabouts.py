"""Commands on whose a job is, where it runs and what it printed, and on jobs that are to be deleted."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import JobRow, Store
from tests.support.boosting import make
from tests.support.hpo.cli.whereabouts import placed
from tests.support.lines import line_with
from tests.support.listed import hpo, job, spec
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError


@pytest.mark.parametrize(
    ("tags", "value"),
    [
        (["team"], "'team'"),
        ("team", "'team'"),
        ({"team": 1}, 1),
        ([{"Key": "team"}], {"Key": "team"}),
        ([{"key": "team", "value": "x"}], {"key": "team", "value": "x"}),
        ({"": "x"}, "''"),
        ([3], 3),
    ],
)
def test_tags_that_are_none_are_refused_before_a_job_begins(tags: Any, value: Any) -> None:
    with refuses(ConfigurationError, field="tags", value=value, remedy="{'team': 'churn'}"):
        make(workers=0, tags=tags)
    with refuses(ConfigurationError, field=("tags", "key"), value="'a'", remedy="2"):
        make(workers=0, tags=[{"Key": "a", "Value": "x"}, {"Key": "a", "Value": "y"}])


def test_tags_may_be_given_by_name_or_as_sagemaker_has_them(store: Store) -> None:
    by_name = make(workers=0, tags={"team": "churn"})
    assert by_name.tags == make(workers=0, tags=[{"Key": "team", "Value": "churn"}]).tags
    store.create_job(JobRow(name="tagged", created_at=1.0, spec=by_name.settings.to_json({}, 1)))
    assert json.loads(hpo("describe", "tagged", "--json"))["Summary"]["tags"] == {"team": "churn"}
    assert HyperparameterTuner.attach("tagged").tags == by_name.tags


def test_a_job_with_tags_of_an_older_version_that_are_none_hides_no_other(store: Store) -> None:
    job(store, "other", values=[0.5])
    job(store, "old", values=[0.5], spec={"tags": ["team"]})
    assert {each["HyperParameterTuningJobName"] for each in json.loads(hpo("jobs", "--json"))} == {"other", "old"}
    line_with(hpo("describe", "old"), "tags", "team=")
    assert HyperparameterTuner.attach("old").tags == [{"Key": "team", "Value": ""}]


def test_a_trial_without_workers_has_no_workers_output(store: Store) -> None:
    job(store, "here", values=[0.5, None])
    estimator = {**store.job("here").spec["estimator"], "scaling": {"num_workers": 0}}
    store.update_job("here", spec={**store.job("here").spec, "estimator": estimator})
    said = {number: hpo("logs", "here", "--trial", f"here-00{number}", code=2) for number in (0, 1)}
    mentions(said[0], "here-000", "Completed", "worker", "process", "hpo trials here")
    mentions(said[1], "here-001", "Failed", "worker", "process", "hpo trials here --tracebacks")


@pytest.mark.parametrize("variable", ["RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"])
def test_logs_of_a_job_that_has_no_record_come_from_the_cluster_that_a_variable_names(
    store: Store, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("hpo.jobs.JobsServer", lambda address: SimpleNamespace(log=lambda job: f"{job} at {address}\n"))
    mentions(hpo("logs", "new", code=2), "'new'", "no job")
    monkeypatch.setenv(variable, "http://head:8265")
    assert hpo("logs", "new") == "new at None\n"  # The server reads the variable itself.
    assert hpo("logs", "new", "--address", "http://other:8265") == "new at http://other:8265\n"


def test_a_job_that_runs_is_not_deleted(store: Store) -> None:
    store.create_job(JobRow(name="starting", created_at=time.time(), spec=spec()))
    mentions(hpo("delete", "starting", code=2), "starting", "InProgress", "hpo stop starting")
    job(store, "closing", values=[0.5])
    with store.writer("closing"):
        mentions(hpo("delete", "closing", "--yes", code=2), "closing", "hpo stop closing")
    assert len(store.jobs()) == 2


def test_files_on_another_machine_stay_and_are_named(store: Store) -> None:
    placed(store, "away", host="box")
    store.update_job("away", spec={**store.job("away").spec, "storage_path": "/models"})
    mentions(hpo("delete", "away", "--yes", columns=200), "away", "/models/away", "box")
