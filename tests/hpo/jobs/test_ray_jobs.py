"""Jobs on a Ray cluster through its Jobs API, on a real head that runs them."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import psutil
import pytest
import yaml

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.jobs.launch.ray_jobs import JobsServer
from hpo.jobs.launch.whereabouts import owner
from hpo.record.store import Store
from tests.support import own_code
from tests.support.boosting import CHANNELS, STATIC, make
from tests.support.lines import line_with
from tests.support.ports import free_port
from tests.support.refusals import mentions, refuses
from tests.support.submitted import hpo, project
from trainers import ScalingConfig
from trainers.errors import ConfigurationError, WarmbandError

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A Ray head with token authentication, a process of its own."""

    address: str
    token: str
    home: Path


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
def head(jobs_server: Head, project_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
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


@pytest.mark.ray
def test_a_searcher_and_a_scheduler_of_ray_tunes_go_along_and_the_job_is_resumed(
    head: Head, project_folder: Path
) -> None:
    job = yaml.safe_load((project_folder / "job.yaml").read_text())
    job["trainer"]["hyperparameters"]["num_round"] = 9
    del job["tuning"]["strategy"], job["tuning"]["hyperband"]
    job["tuning"] |= {
        "searcher": {"type": "ray.tune.search.optuna:OptunaSearch"},
        "scheduler": {"type": "ray.tune.schedulers:ASHAScheduler", "arguments": {"max_t": 9}},
    }
    (project_folder / "theirs.yaml").write_text(yaml.safe_dump(job))
    hpo("submit", "theirs.yaml", "--address", head.address, "--name", "theirs", "--wait")
    with Store() as store:
        before = store.trials("theirs")
        assert (store.job("theirs").status, len([row for row in before if row.number >= 0])) == ("Completed", 6)
    hpo("resume", "theirs", "--set", "tuning.max_jobs=8")
    with Store() as store:
        after = store.trials("theirs")
        assert store.job("theirs").status == "Completed"
    assert len([row for row in after if row.number >= 0]) == 8
    kept = {row.trial_id: (row.hyperparameters, row.resource, row.objective) for row in after}
    assert all(kept[row.trial_id] == (row.hyperparameters, row.resource, row.objective) for row in before)


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
    mentions(hpo("logs", "by-hand", "--address", head.address).stdout, "by-hand", "Hyperband")


@pytest.mark.ray
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


@pytest.mark.ray
def test_a_working_directory_that_is_too_large_names_what_is(head: Head, project_folder: Path) -> None:
    with (project_folder / "model.bin").open("wb") as stream:
        for _ in range(102):
            stream.write(secrets.token_bytes(2**20))
    with refuses(ConfigurationError, field="model.bin", value="102 MiB", remedy=("--working-dir", ".rayignore")):
        hpo("submit", "job.yaml", "--address", head.address, "--name", "too-large")


@pytest.mark.long
@pytest.mark.ray
def test_a_trainer_and_a_strategy_of_a_users_own_go_along(
    head: Head, project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(own_code.__file__, project_folder / "shop.py")
    keys = ("trainer.type=custom", "trainer.trainer_class=shop:Churn", "tuning.strategy=shop:Halves")
    keys += ("tuning.hyperband=null", "trainer.hyperparameters.num_round=4")
    own = [word for key in keys for word in ("--set", key)]
    submitted = ["submit", "job.yaml", "--address", head.address, "--name", "own", *own]
    with refuses(ConfigurationError, field=("shop:Churn", "shop:Halves", "shop.py"), remedy="--allow-code"):
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
    monkeypatch.syspath_prepend(str(project_folder))
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


@pytest.mark.long
@pytest.mark.ray
@pytest.mark.usefixtures("churn")
def test_fit_without_waiting_goes_to_the_cluster(head: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    other = make(workers=1, store=f"sqlite:///{head.home}/other.db", storage_path=str(head.home / "models"))
    with refuses(ConfigurationError, field=head.address, value="churn-1", remedy="--name"):
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
    mentions(hpo("stop", "apart").stdout, "apart", "Stopped")
    tuner.wait()
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Stopped"
    mentions(hpo("delete", "apart", "--yes").stdout, "apart")
    with Store() as store:
        assert "apart" not in {job.name for job in store.jobs()}
