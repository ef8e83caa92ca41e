"""What compose.yaml runs, run: its head and a worker on machines of their own, its health checks, and a job."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster.machine import Machine, Switch, possible
from tests.support.cluster.ray_machines import command_of, executable, kept_environment, until
from tests.support.docker.deployment import DOCKER, ROOT, read

SECONDS = 240.0
LOOK_SECONDS = 1.0
"""Each look at a machine's health is a process."""

RECONNECT_SECONDS = "10"
"""For so long a node looks for a head that is gone, in this test; in life it is Ray's own minute."""

JOB = """
name: composed
data: {dataset: bank-marketing-synthetic}
trainer: {type: xgboost, num_workers: 2, hyperparameters: {objective: binary:logistic, eval_metric: auc}}
tuning:
  objective_metric_name: validation:auc
  max_jobs: 3
  hyperband: {max_resource: 3}
  ranges: {eta: {type: continuous, min: 0.1, max: 0.5}}
"""


class Composed:
    """A head and a worker as compose.yaml has them, with the secrets of make-secrets.sh and a shared volume."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="wb-"))
        (self.base / "own").mkdir()
        (self.base / "shared").mkdir()
        shutil.copy(DOCKER / "make-secrets.sh", self.base)
        subprocess.run(["sh", str(self.base / "make-secrets.sh")], check=True, capture_output=True, timeout=60)
        # No PostgreSQL on these machines: the record is a file of the shared volume, whose URL comes from a file too.
        (self.base / "secrets" / "store_url").write_text(f"sqlite:///{self.base}/shared/record.db")
        self.services = read("compose.yaml")["services"]
        self.switch = Switch()
        self.machines: dict[str, Machine] = {}
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.logs = {name: (self.base / f"{name}.log").open("w+") for name in ("head", "worker")}

    def environment(self, service: str) -> dict[str, str]:
        """The environment of a service's container."""
        given = {
            name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
            for name, text in self.services[service]["environment"].items()
        }
        given |= {name: text.replace("/run/secrets", f"{self.base}/secrets") for name, text in given.items()}
        given["WARMBAND_HOME"] = f"{self.base}/shared"
        given["RAY_gcs_rpc_server_reconnect_timeout_s"] = RECONNECT_SECONDS
        kept = {name: text for name, text in kept_environment(self.base / "own").items() if not name.startswith("AWS")}
        return {**kept, **given, "PATH": f"{Path(executable('ray')).parent}:{os.environ['PATH']}"}

    def start(self, service: str) -> Machine:
        """Starts a service's container."""
        machine = Machine(service, self.base / "own")
        self.switch.plug(machine)
        self.machines[service] = machine
        head = self.machines["head"].address
        machine.run(["sh", "-c", f"echo {head} head >> /etc/hosts"], os.environ, 10.0)
        self._run(service)
        return machine

    def _run(self, service: str) -> None:
        command = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", self.services[service]["command"])
        self.processes[service] = self.machines[service].start(
            command_of([*shlex.split(command), f"--temp-dir={self.base}/own/ray"]),
            self.environment(service),
            self.logs[service],
        )

    def healthy(self, service: str) -> bool:
        """What the service's own health check says, or that of the image; a command that has ended is run again."""
        if self.processes[service].poll() is not None:
            assert self.services[service]["restart"] == "unless-stopped"
            self._run(service)
        _, *test = self.services[service].get("healthcheck", {}).get("test", ["CMD", "python", "docker/healthy.py"])
        done = self.machines[service].run(
            command_of([test[0], ROOT / test[1], *test[2:]]), self.environment(service), 30.0
        )
        return done.returncode == 0

    def close(self) -> None:
        """Ends all of it."""
        for machine in self.machines.values():
            machine.kill()
        self.switch.close()
        for log in self.logs.values():
            log.close()
        shutil.rmtree(self.base, ignore_errors=True)


@pytest.fixture
def composed() -> Iterator[Composed]:
    if not possible():
        pytest.skip("needs Linux namespaces, and root's rights to make them")
    made = Composed()
    try:
        yield made
    finally:
        made.close()


@pytest.mark.fault
def test_head_and_worker_come_up_healthy_and_run_what_is_submitted(composed: Composed) -> None:
    head = composed.start("head")
    assert not composed.healthy("head")  # Nothing answers yet.
    until(lambda: composed.healthy("head"), "the head's health check", SECONDS, every=LOOK_SECONDS)
    worker = composed.start("worker")
    until(lambda: composed.healthy("worker"), "the worker's health check", SECONDS, every=LOOK_SECONDS)

    # As a user does on the machine itself, which compose.yaml's port leads to.
    (composed.base / "work").mkdir()
    (composed.base / "work" / "job.yaml").write_text(JOB)
    environment = composed.environment("head")
    submit = ["hpo", "submit", "work/job.yaml", "--working-dir", "work", "--address", "http://127.0.0.1:8265", "--wait"]
    inside = ["sh", "-c", f'cd {composed.base} && exec "$@"', "sh"]
    done = head.run([*inside, *command_of(submit)], environment, 240.0)
    assert done.returncode == 0, done.stdout
    said = head.run(command_of(["hpo", "describe", "composed"]), environment, 60.0).stdout
    assert "Completed" in said, said

    # Who has no token gets nothing.
    stranger = {name: text for name, text in environment.items() if name != "RAY_AUTH_TOKEN_PATH"}
    stranger["RAY_AUTH_TOKEN"] = "0" * 64
    refused = head.run([*inside, *command_of(submit)], stranger, 60.0)
    assert refused.returncode != 0

    token = (composed.base / "secrets" / "ray_token").read_text()
    for machine in (head, worker):
        assert not [line for line in machine.processes().values() if token in line]
    for log in composed.logs.values():
        log.seek(0)
        assert token not in log.read()

    # A head that is gone is noticed.
    composed.machines.pop("head").kill()
    until(lambda: not composed.healthy("worker"), "the worker's health check to fail", SECONDS, every=LOOK_SECONDS)
