"""Jobs that are submitted to a Ray cluster: what is refused before anything starts, and what a driver knows."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import ray
import sqlalchemy as sa

from hpo import Callback
from hpo.jobs.launch import background, ray_jobs as submission
from hpo.jobs.launch.background import check_can_follow
from hpo.jobs.launch.ray_jobs import JobsServer, check_no_password, check_pinned
from hpo.jobs.launch.whereabouts import driver_details, owner, ray_job, without_password
from hpo.record import ACTS_AS
from hpo.record.store import Store
from tests.support.boosting import CHANNELS, make
from tests.support.postgres import PASSWORD, Postgres
from tests.support.submitted import hpo
from trainers import TorchTrainer, TrainContext
from trainers.errors import ConfigurationError


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """The address of a server that answers everything with the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, '{"ray_version": "2.9.3"}', r"runs Ray 2\.9\.3, and this process Ray .*install ray==2\.9\.3 here"),
        (404, "", "it answers with 404 Not Found, as no Ray dashboard does"),
        (200, "<html>", "no Ray jobs server at http://127"),
        (401, "", "wants a token, and there is none; set RAY_AUTH_TOKEN"),
    ],
)
def test_what_is_no_such_cluster_is_refused(project_folder: Path, status: int, body: str, message: str) -> None:
    with answering(status, body) as address, pytest.raises(ConfigurationError, match=message):
        hpo("submit", "job.yaml", "--address", address)


def test_a_token_that_is_wrong_is_told_from_one_that_is_missing(
    project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong")
    with answering(403, "") as address, pytest.raises(ConfigurationError, match="refuses this token") as caught:
        hpo("submit", "job.yaml", "--address", address)
    assert "wrong" not in str(caught.value)


def test_a_token_file_that_is_not_there_is_named(project_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "nowhere/token")
    with pytest.raises(ConfigurationError, match=r"nowhere/token cannot be read \(No such file"):
        hpo("submit", "job.yaml", "--address", "http://127.0.0.1:1")


def test_nobody_listens(project_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no Ray jobs server at http://127.0.0.1:1: .*refused; give the addr"):
        hpo("submit", "job.yaml", "--address", "http://127.0.0.1:1")


def test_a_server_that_does_not_answer_is_not_waited_for_long(
    project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "ANSWER_SECONDS", 0.6)
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(ConfigurationError, match="no answer within"):
        hpo("submit", "job.yaml", "--address", f"http://127.0.0.1:{deaf.getsockname()[1]}")


def test_a_password_goes_into_no_command(project_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"://\*\*\*@db/jobs' has a password in it") as caught:
        hpo("submit", "job.yaml", "--set", "store=postgresql://me:planted@db/jobs", "--address", "http://127.0.0.1:1")
    assert "planted" not in str(caught.value)
    check_no_password("postgresql://me@db/jobs")
    for secret in ("postgresql://me:pa/pl@nted@db/jobs", "postgresql://db/jobs?user=me&password=pl@nted"):
        with pytest.raises(ConfigurationError, match="has a password in it") as caught:
            check_no_password(f"--set store={secret}")
        assert "nted" not in str(caught.value)


@pytest.mark.system
def test_a_driver_on_a_cluster_is_handed_no_password_and_none_that_is_masked(postgres: Postgres) -> None:
    server = cast(JobsServer, SimpleNamespace(address="http://127.0.0.1:1"))
    url = sa.make_url(postgres.new_database())
    in_query = url.set(password=None).update_query_dict({"password": PASSWORD})
    for secret in (url, in_query):
        with Store(secret.render_as_string(hide_password=False)) as store:
            assert PASSWORD not in store.url
            handed = background._reaching(store, server)
            assert handed.keys() == {ACTS_AS}
            assert PASSWORD not in str(handed)
    postgres.drop(str(url))


def test_the_job_file_has_to_go_along(project_folder: Path) -> None:
    (project_folder / "sub").mkdir()
    with pytest.raises(ConfigurationError, match=r"'job.yaml' is not in the working directory .*/sub'"):
        hpo("submit", "job.yaml", "--working-dir", "sub")
    with pytest.raises(ConfigurationError, match="'nowhere' is no folder"):
        hpo("submit", "job.yaml", "--working-dir", "nowhere")
    with pytest.raises(ConfigurationError, match=r"no job file 'jop.yaml'"):
        hpo("submit", "jop.yaml")


def test_what_is_wrong_with_a_job_is_said_here(project_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="trainer: hyperparameters 'objektive'"):
        hpo("submit", "job.yaml", "--set", "trainer.hyperparameters.objektive=x", "--address", "http://127.0.0.1:1")


def test_callbacks_and_functions_of_a_script_cannot_follow() -> None:
    with pytest.raises(ConfigurationError, match=r"callbacks Callback cannot follow.*wait=True"):
        check_can_follow(make().settings.code(), [Callback()])
    with pytest.raises(ConfigurationError, match="callbacks Callback"):
        make(callbacks=[Callback()]).fit(CHANNELS, wait=False)

    def train(context: TrainContext) -> None:
        pass

    trained = {"hyperparameters": {"epochs": 1}, "metrics": ["validation:x"]}
    with pytest.raises(ConfigurationError, match="'train' is in another function, where the other process"):
        check_can_follow(TorchTrainer(train, **trained).code(), [])
    train.__module__, train.__qualname__ = "__main__", "train"
    with pytest.raises(ConfigurationError, match=r"'train' is in this script or notebook.*as 'training:train'"):
        check_can_follow(TorchTrainer(train, **trained).code(), [])


# ---- what a driver knows of where it runs


def in_a_ray_job(monkeypatch: pytest.MonkeyPatch, **metadata: str) -> None:
    config = {"metadata": {"job_submission_id": "churn-1", **metadata}}
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps(config))


def test_a_driver_knows_its_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ray_job(), driver_details()) == ({}, {})
    in_a_ray_job(monkeypatch, owner="ada", jobs_server="http://head:8265")
    assert driver_details() == {"submission_id": "churn-1", "address": "http://head:8265"}
    assert owner() == "ada"
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "no JSON")
    assert ray_job() == {}


def test_other_versions_than_where_it_was_submitted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_ray_job(monkeypatch, pinned=json.dumps(submission.pinned()))
    check_pinned()
    in_a_ray_job(monkeypatch, pinned=json.dumps({"python": "3.9", "ray": ray.__version__}))
    with pytest.raises(ConfigurationError, match=r"the cluster's nodes have python 3\.11, not 3\.9"):
        check_pinned()


def test_an_address_is_shown_without_its_password() -> None:
    assert without_password("http://me:planted@head:8265/x") == "http://head:8265/x"
    assert without_password("http://head:8265") == "http://head:8265"
    assert without_password("http://me:pl/anted@head:8265/x") == "http://head:8265/x"
    assert without_password("http://head:8265/a@b") == "http://head:8265/a@b"
