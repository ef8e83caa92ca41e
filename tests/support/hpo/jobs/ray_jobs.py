"""A Ray cluster with a jobs server, and a submitted job."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.support.ports import free_port
from tests.support.submitted import hpo, project

ROOT = Path(__file__).resolve().parents[4]


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


@pytest.fixture(scope="module")
def churn(jobs_server: Head, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Submit the job churn-1 and follow it to its end; return the output."""
    with pytest.MonkeyPatch.context() as patched:
        project(tmp_path_factory.mktemp("churn"), patched)
        reach(jobs_server, patched)
        return hpo("submit", "job.yaml", "--address", jobs_server.address, "--name", "churn-1", "--follow").stdout
