"""Jobs on a Ray cluster through its Jobs API: what is refused before, and a real head that runs them."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import pytest
import ray
import sqlalchemy as sa
from typer.testing import CliRunner, Result

from hpo import Callback, ContinuousParameter, HyperparameterTuner
from hpo.cli import app
from hpo.jobs.launch import background, ray_jobs as submission
from hpo.jobs.launch.background import check_can_follow
from hpo.jobs.launch.ray_jobs import JobsServer, check_no_password, check_pinned
from hpo.jobs.launch.whereabouts import driver_details, owner, ray_job, without_password
from hpo.record.store import Store
from tests.support import own_code
from tests.support.boosting import CHANNELS, STATIC, make
from tests.support.postgres import PASSWORD, Postgres
from trainers import ScalingConfig, TorchTrainer, TrainContext
from trainers.errors import ConfigurationError, WarmbandError

ROOT = Path(__file__).resolve().parents[3]

JOB = """
data:
  channels:
    train: {path: train.csv}
    validation: {path: validation.csv}
trainer:
  type: xgboost
  num_workers: 0
  resources_per_worker: {CPU: 1}
  hyperparameters: {objective: binary:logistic, eval_metric: auc}
tuning:
  objective_metric_name: validation:auc
  strategy: Hyperband
  hyperband: {max_resource: 9, suggestions: random}
  max_jobs: 6
  random_seed: 1
  ranges:
    eta: {type: continuous, min: 0.01, max: 1}
tags: {team: churn}
"""


def project(place: Path, patch: pytest.MonkeyPatch) -> None:
    """Makes a folder the working directory, with a job file and its data, and forgets Ray's variables."""
    (place / "job.yaml").write_text(JOB)
    for name, frame in CHANNELS.items():
        frame.to_csv(place / f"{name}.csv", index=False)
    patch.chdir(place)
    for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        patch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a job file and its data."""
    place = tmp_path / "project"
    place.mkdir()
    project(place, monkeypatch)
    return place


def hpo(*arguments: str, code: int = 0) -> Result:
    """A command's result, whose exit code is as it should be."""
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, arguments)
    if isinstance(result.exception, WarmbandError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


# ---- what is refused before anything starts


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
def test_what_is_no_such_cluster_is_refused(folder: Path, status: int, body: str, message: str) -> None:
    with answering(status, body) as address, pytest.raises(ConfigurationError, match=message):
        hpo("submit", "job.yaml", "--address", address)


def test_a_token_that_is_wrong_is_told_from_one_that_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "wrong")
    with answering(403, "") as address, pytest.raises(ConfigurationError, match="refuses this token") as caught:
        hpo("submit", "job.yaml", "--address", address)
    assert "wrong" not in str(caught.value)


def test_a_token_file_that_is_not_there_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "nowhere/token")
    with pytest.raises(ConfigurationError, match=r"nowhere/token cannot be read \(No such file"):
        hpo("submit", "job.yaml", "--address", "http://127.0.0.1:1")


def test_nobody_listens(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no Ray jobs server at http://127.0.0.1:1: .*refused; give the addr"):
        hpo("submit", "job.yaml", "--address", "http://127.0.0.1:1")


def test_a_server_that_does_not_answer_is_not_waited_for_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "ANSWER_SECONDS", 0.6)
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(ConfigurationError, match="no answer within"):
        hpo("submit", "job.yaml", "--address", f"http://127.0.0.1:{deaf.getsockname()[1]}")


def test_a_password_goes_into_no_command(folder: Path) -> None:
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
            assert background._reaching(store, server) == {}
    postgres.drop(str(url))


def test_the_job_file_has_to_go_along(folder: Path) -> None:
    (folder / "sub").mkdir()
    with pytest.raises(ConfigurationError, match=r"'job.yaml' is not in the working directory .*/sub'"):
        hpo("submit", "job.yaml", "--working-dir", "sub")
    with pytest.raises(ConfigurationError, match="'nowhere' is no folder"):
        hpo("submit", "job.yaml", "--working-dir", "nowhere")
    with pytest.raises(ConfigurationError, match=r"no job file 'jop.yaml'"):
        hpo("submit", "jop.yaml")


def test_what_is_wrong_with_a_job_is_said_here(folder: Path) -> None:
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


# ---- a real head


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A Ray head with token authentication, a process of its own."""

    address: str
    token: str
    home: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def jobs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    """A cluster of one head, as `ray start` makes it, whose drivers write their record into `home`."""
    home, token = tmp_path_factory.mktemp("cluster"), secrets.token_hex(16)
    binaries = Path(sys.executable).parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "WARMBAND_"))},
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
        "RAY_enable_worker_prestart": "0",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_worker_niceness": "0",
        # Nobody looks at these, and they cost processor time.
        "RAY_enable_metrics_collection": "false",
        "RAY_task_events_report_interval_ms": "0",
        "WARMBAND_HOME": str(home),
    }
    for _ in range(3):  # Ray gives its node 30 s to start, which many tests at once can make too few.
        scratch, log = Path(tempfile.mkdtemp(prefix="wbjobs")), home / "head.log"
        port = free_port()
        process = start_head(binaries / "ray", port, scratch, log, environment)
        try:
            deadline = time.monotonic() + 150
            while "Ray runtime started" not in log.read_text() and process.poll() is None:
                assert time.monotonic() < deadline, f"the head did not start within 150 s: {log.read_text()}"
                time.sleep(0.2)
            if process.poll() is None:
                yield Head(address=f"http://127.0.0.1:{port}", token=token, home=home)
                return
        finally:
            end_all(process, str(scratch))
            shutil.rmtree(scratch, ignore_errors=True)
    pytest.fail(f"the head did not start three times: {log.read_text()}")


def start_head(
    ray_command: Path, port: int, scratch: Path, log: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Starts a head, none of whose ports is another cluster's."""
    ports = {name: free_port() for name in ("port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port")}
    ports |= {name: free_port() for name in ("runtime-env-agent-port", "metrics-export-port")}
    options = ["--num-cpus=8", "--include-dashboard=true", "--dashboard-host=127.0.0.1", f"--dashboard-port={port}"]
    options += ["--disable-usage-stats", "--min-worker-port=0", "--max-worker-port=0", f"--temp-dir={scratch}"]
    options += [f"--{name}={value}" for name, value in ports.items()]
    with log.open("wb") as stream:
        return subprocess.Popen(
            [ray_command, "start", "--head", "--block", *options],
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end_all(head: subprocess.Popen[bytes], scratch: str) -> None:
    """Ends a head and all below it at once: an agent that outlives its head looks for it, and spins, for a minute.

    And whatever names its folder, which is what a head leaves that ended by itself.
    """
    below = []
    with suppress(psutil.Error):  # It may have ended.
        below = psutil.Process(head.pid).children(recursive=True)
    head.kill()
    for process in below:
        with suppress(psutil.Error):
            process.kill()
    head.wait(30)
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if scratch in command.read_text():
                os.kill(int(command.parent.name), signal.SIGKILL)


def reach(head: Head, patch: pytest.MonkeyPatch) -> None:
    """Lets this process know the head's token and record too."""
    patch.setenv("RAY_AUTH_TOKEN", head.token)
    patch.setenv("WARMBAND_HOME", str(head.home))


@pytest.fixture
def head(jobs_server: Head, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    """The head, reached from a working directory."""
    reach(jobs_server, monkeypatch)
    return jobs_server


def until(what: str, found: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def churn(jobs_server: Head, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the submission of the job churn-1 printed, which followed it to its end."""
    with pytest.MonkeyPatch.context() as patched:
        project(tmp_path_factory.mktemp("churn"), patched)
        reach(jobs_server, patched)
        return hpo("submit", "job.yaml", "--address", jobs_server.address, "--name", "churn-1", "--follow").stdout


@pytest.mark.ray
def test_a_submitted_job_runs_on_the_cluster_and_is_seen_from_here(churn: str, head: Head) -> None:
    assert churn.startswith(f"Submitted churn-1 to {head.address}\nIt runs. Record: sqlite:///")
    assert "warning: that is a file on the cluster's head" in churn
    assert "churn-1: Completed" in churn
    assert churn.rstrip().endswith("churn-1 has ended")
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
    assert "Tuning job churn-1: Hyperband, 6 trials" in log
    assert hpo("logs", "churn-1", "--tail", "3").stdout == "".join(log.splitlines(keepends=True)[-3:])
    assert hpo("logs", "churn-1", "--follow", "--tail", "1").stdout.strip() == log.splitlines()[-1]
    assert f"churn-1 on {head.address}" in hpo("describe", "churn-1").stdout
    assert head.address in hpo("jobs").stdout

    with pytest.raises(ConfigurationError, match="has had a job 'churn-1'; give another --name"):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "churn-1")


@pytest.mark.ray
@pytest.mark.usefixtures("churn")
def test_rays_own_command_does_the_same(head: Head) -> None:
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_API_SERVER_ADDRESS": head.address}
    ray_command = Path(sys.executable).parent / "ray"
    entry = ["hpo", "tune", "job.yaml", "--set", "name=by-hand"]
    done = subprocess.run(
        [ray_command, "job", "submit", "--working-dir", ".", "--", *entry],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with Store() as store:
        job = store.job("by-hand")
        assert job.status == "Completed"
        assert [trial.objective for trial in store.trials("by-hand")] == [
            trial.objective for trial in store.trials("churn-1")
        ]
    submitted = re.search(r"raysubmit_\w+", done.stdout)
    assert submitted is not None
    assert job.driver["submission_id"] == submitted[0]
    assert job.driver["address"]
    assert "Tuning job by-hand" in hpo("logs", "by-hand", "--address", head.address).stdout


@pytest.mark.ray
def test_what_goes_wrong_on_the_cluster_is_said_here(head: Head, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "train.csv").unlink()
    with pytest.raises(WarmbandError, match=r"job no-data ended before it began: error: .*train\.csv"):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "no-data")
    with pytest.raises(ConfigurationError, match="no job 'nobody'"):
        hpo("logs", "nobody", "--address", head.address)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    with pytest.raises(ConfigurationError, match="refuses this token"):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "no-token")


@pytest.mark.ray
def test_a_working_directory_that_is_too_large_names_what_is(head: Head, folder: Path) -> None:
    with (folder / "model.bin").open("wb") as stream:
        for _ in range(102):
            stream.write(secrets.token_bytes(2**20))
    with pytest.raises(ConfigurationError, match=r"too large for Ray to upload.*model\.bin alone has 102 MiB"):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "too-large")


@pytest.mark.ray
def test_a_trainer_and_a_strategy_of_a_users_own_go_along(
    head: Head, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(own_code.__file__, folder / "shop.py")
    keys = ("trainer.type=custom", "trainer.trainer_class=shop:Churn", "tuning.strategy=shop:Halves")
    keys += ("tuning.hyperband=null", "trainer.hyperparameters.num_round=4")
    own = [word for key in keys for word in ("--set", key)]
    submitted = ["submit", "job.yaml", "--address", head.address, "--name", "own", *own]
    with pytest.raises(
        ConfigurationError,
        match=r"'shop:Churn', which is Churn of .*'shop:Halves', which is Halves of .*give --allow-code",
    ):
        hpo(*submitted)
    hpo(*submitted, "--allow-code", "--wait")
    with Store() as store:
        job = store.job("own")
    assert (job.status, job.spec["estimator"]["trainer"], job.spec["strategy"]) == (
        "Completed",
        "shop:Churn",
        "shop:Halves",
    )

    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.syspath_prepend(str(folder))
    scaling = ScalingConfig(num_workers=1, resources_per_worker={"CPU": 1})
    shop = import_module("shop")
    trainer = shop.Churn(scaling=scaling, hyperparameters={**STATIC, "num_round": 2}, floor=0.5)
    tuner = HyperparameterTuner(trainer, "validation:auc", {"eta": ContinuousParameter(0.1, 1)}, strategy=shop.Halves())
    tuner.fit(CHANNELS, job_name="own-apart", wait=False)
    tuner.wait()
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Completed"
    with Store() as store:
        assert store.job("own-apart").driver["submission_id"] == "own-apart"
    attached = HyperparameterTuner.attach("own-apart", allow_code=True)
    assert attached.best_estimator().options == {"floor": 0.5}
    assert attached.strategy.options == {"factor": 2}


@pytest.mark.ray
@pytest.mark.usefixtures("churn")
def test_fit_without_waiting_goes_to_the_cluster(head: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    other = make(workers=1, store=f"sqlite:///{head.home}/other.db", storage_path=str(head.home / "models"))
    with pytest.raises(ConfigurationError, match="has had a job 'churn-1'"):
        other.fit(CHANNELS, job_name="churn-1", wait=False)
    with Store(f"sqlite:///{head.home}/other.db") as store:
        assert store.jobs() == []
    assert not any((head.home / "models").rglob("*.parquet"))

    tuner = make(workers=1, max_jobs=2000, max_parallel_jobs=1)
    tuner.fit(CHANNELS, job_name="apart", wait=False)
    with Store() as store:
        # On a busy machine `fit` may return before the driver has begun.
        until("its first trials", lambda: len(store.trials("apart")) > 2)
        assert store.job("apart").driver["submission_id"] == "apart"
    assert "apart is Stopped" in hpo("stop", "apart").stdout
    tuner.wait()
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Stopped"
    assert hpo("delete", "apart", "--yes").stdout.startswith("Deleted apart")
