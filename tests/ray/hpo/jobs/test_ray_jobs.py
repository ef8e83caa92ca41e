"""Jobs on a Ray cluster through its Jobs API, on a real head that runs them."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from hpo.jobs.launch.ray_jobs import JobsServer
from hpo.jobs.launch.whereabouts import owner
from hpo.record.store import Store
from tests.support.hpo.jobs.ray_jobs import Head, churn, head, jobs_server  # noqa: F401  # Fixtures.
from tests.support.lines import line_with
from tests.support.refusals import mentions, refuses
from tests.support.submitted import hpo
from trainers.errors import ConfigurationError, WarmbandError


def test_a_submitted_job_runs_on_the_cluster_and_is_seen_from_here(churn: str, head: Head) -> None:
    mentions(churn, "churn-1", head.address, "sqlite:///", "warning", "WARMBAND_STORE")
    assert "churn-1: Completed" in churn
    mentions(churn.rstrip().splitlines()[-1], "churn-1")
    assert head.token not in churn

    with Store() as store:
        job = store.job("churn-1")
    assert (job.status, job.owner) == ("Completed", owner())
    assert (job.driver["submission_id"], job.driver["address"]) == ("churn-1", head.address)
    assert job.spec["tags"] == [{"Key": "team", "Value": "churn"}]
    info = JobsServer(head.address)._client.get_job_info("churn-1")
    assert info.metadata is not None
    assert (info.metadata["owner"], json.loads(info.metadata["tags"])) == (owner(), {"team": "churn"})

    log = hpo("logs", "churn-1").stdout
    line_with(log, "churn-1", "Hyperband", "6")
    assert hpo("logs", "churn-1", "--tail", "3").stdout == "".join(log.splitlines(keepends=True)[-3:])
    assert hpo("logs", "churn-1", "--follow", "--tail", "1").stdout.strip() == log.splitlines()[-1]
    line_with(hpo("describe", "churn-1").stdout, "churn-1", head.address)
    assert head.address in hpo("jobs").stdout

    with refuses(ConfigurationError, field=head.address, value="churn-1", remedy=("--name", "hpo resume churn-1")):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "churn-1")


def test_what_goes_wrong_on_the_cluster_is_said_here(
    head: Head, project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project_folder / "train.csv").unlink()
    with refuses(WarmbandError, field="no-data", value="train.csv"):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "no-data")
    with refuses(ConfigurationError, field=head.address, value="nobody", remedy="--address"):
        hpo("logs", "nobody", "--address", head.address)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    with refuses(ConfigurationError, field=(head.address, "token"), remedy=("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "no-token")


def test_a_working_directory_that_is_too_large_names_what_is(head: Head, project_folder: Path) -> None:
    with (project_folder / "model.bin").open("wb") as stream:
        for _ in range(102):
            stream.write(secrets.token_bytes(2**20))
    with refuses(ConfigurationError, field="model.bin", value="102 MiB", remedy=("--working-dir", ".rayignore")):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "too-large")
