"""Jobs that are submitted to a Ray cluster: what is refused before anything starts, and what a driver knows."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import ray

from hpo import Callback
from hpo.jobs.launch import ray_jobs as submission
from hpo.jobs.launch.background import check_can_follow
from hpo.jobs.launch.ray_jobs import check_no_password, check_pinned
from hpo.jobs.launch.whereabouts import driver_details, owner, ray_job, without_password
from tests.support.boosting import CHANNELS, make
from tests.support.refusals import refuses
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
    ("status", "body", "names"),
    [
        (200, '{"ray_version": "2.9.3"}', ("2.9.3", ray.__version__, "ray==2.9.3")),
        (404, "", ("404 Not Found", "--address", "RAY_API_SERVER_ADDRESS")),
        (200, "<html>", ("--address", "RAY_API_SERVER_ADDRESS")),
        (401, "", ("token", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")),
    ],
)
def test_what_is_no_such_cluster_is_refused(
    project_folder: Path, status: int, body: str, names: tuple[str, ...]
) -> None:
    with answering(status, body) as address, refuses(ConfigurationError, field=address, remedy=names):
        hpo("submit", "job.yaml", "--address", address)


def test_a_token_that_is_wrong_is_told_from_one_that_is_missing(
    project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    with answering(403, "") as address:
        for token in ("", "planted"):
            monkeypatch.setenv("RAY_AUTH_TOKEN", token)
            with refuses(ConfigurationError, field=(address, "token"), remedy="RAY_AUTH_TOKEN") as caught:
                hpo("submit", "job.yaml", "--address", address)
            said.append(str(caught.value))
    missing, wrong = said
    assert missing != wrong
    assert "planted" not in wrong


def test_a_token_file_that_is_not_there_is_named(project_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "nowhere/token")
    with refuses(ConfigurationError, field="RAY_AUTH_TOKEN_PATH", value="nowhere/token", remedy="RAY_AUTH_TOKEN"):
        hpo("submit", "job.yaml", "--address", "http://127.0.0.1:1")


def test_nobody_listens(project_folder: Path) -> None:
    remedy = ("--address", "RAY_API_SERVER_ADDRESS")
    with refuses(ConfigurationError, field="http://127.0.0.1:1", value="refused", remedy=remedy):
        hpo("submit", "job.yaml", "--address", "http://127.0.0.1:1")


def test_a_server_that_does_not_answer_is_not_waited_for_long(
    project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "ANSWER_SECONDS", 0.6)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with refuses(ConfigurationError, field=address, value="0.6 s", remedy="--address"):
            hpo("submit", "job.yaml", "--address", address)


def test_a_password_goes_into_no_command(project_folder: Path) -> None:
    with refuses(ConfigurationError, field="password", value="://***@db/jobs", remedy="WARMBAND_STORE") as caught:
        hpo("submit", "job.yaml", "--set", "store=postgresql://me:planted@db/jobs", "--address", "http://127.0.0.1:1")
    assert "planted" not in str(caught.value)
    check_no_password("postgresql://me@db/jobs")
    for secret in ("postgresql://me:pa/pl@nted@db/jobs", "postgresql://db/jobs?user=me&password=pl@nted"):
        with refuses(ConfigurationError, field="password", remedy=("WARMBAND_STORE", "PGPASSWORD")) as caught:
            check_no_password(f"--set store={secret}")
        assert "nted" not in str(caught.value)


def test_the_job_file_has_to_go_along(project_folder: Path) -> None:
    (project_folder / "sub").mkdir()
    folders = (str(project_folder / "sub"), "--working-dir", str(project_folder))
    with refuses(ConfigurationError, field="job.yaml", remedy=folders):
        hpo("submit", "job.yaml", "--working-dir", "sub")
    with refuses(ConfigurationError, field="--working-dir", value="nowhere"):
        hpo("submit", "job.yaml", "--working-dir", "nowhere")
    with refuses(ConfigurationError, field="job file", value="jop.yaml", remedy="hpo init"):
        hpo("submit", "jop.yaml")


def test_what_is_wrong_with_a_job_is_said_here(project_folder: Path) -> None:
    with refuses(ConfigurationError, field=("trainer", "hyperparameters"), value="objektive", remedy="objective"):
        hpo("submit", "job.yaml", "--set", "trainer.hyperparameters.objektive=x", "--address", "http://127.0.0.1:1")


def test_callbacks_and_functions_of_a_script_cannot_follow() -> None:
    with refuses(ConfigurationError, field="callbacks", value="Callback", remedy="fit(wait=True)"):
        check_can_follow(make().settings.code(), [Callback()])
    with refuses(ConfigurationError, field="callbacks", value="Callback", remedy="fit(wait=True)"):
        make(callbacks=[Callback()]).fit(CHANNELS, wait=False)

    def train(context: TrainContext) -> None:
        pass

    trained = {"hyperparameters": {"epochs": 1}, "metrics": ["validation:x"]}
    with refuses(ConfigurationError, value="'train'", remedy=("'training:train'", "fit(wait=True)")):
        check_can_follow(TorchTrainer(train, **trained).code(), [])
    train.__module__, train.__qualname__ = "__main__", "train"
    with refuses(ConfigurationError, value="'train'", remedy=("'training:train'", "fit(wait=True)")):
        check_can_follow(TorchTrainer(train, **trained).code(), [])


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
    with refuses(ConfigurationError, field=("python", "3.11"), value="3.9", remedy="ray job submit"):
        check_pinned()


def test_an_address_is_shown_without_its_password() -> None:
    assert without_password("http://me:planted@head:8265/x") == "http://head:8265/x"
    assert without_password("http://head:8265") == "http://head:8265"
    assert without_password("http://me:pl/anted@head:8265/x") == "http://head:8265/x"
    assert without_password("http://head:8265/a@b") == "http://head:8265/a@b"
