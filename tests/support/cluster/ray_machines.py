"""A Ray cluster of several machines on this one: `ray start` in each, drivers beside the head."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from tests.support.cluster.machine import READY_SECONDS, Machine, Switch, signal_it

ROOT = Path(__file__).parents[3]
START_SECONDS = 90.0
"""How long `ray start` may take, on cores that are busy with other tests."""

START_ATTEMPTS = 3
"""Ray itself gives a start up after 30 s, which busy cores may take."""

PORT = 6379

# The head looks after the other nodes every second, and gives up on one after three looks without an answer within 3 s
# each; Ray's own defaults take 30 s and more. Workers are started when they are needed, not one a CPU at the start.
SETTINGS = {
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Nobody looks at these, and they cost each node processor time.
    "RAY_enable_metrics_collection": "false",
    "RAY_task_events_report_interval_ms": "0",
    "REPORTER_UPDATE_INTERVAL_MS": "60000",
    # A worker that has a machine's CPUs to itself would start as many threads, which wait for each other here.
    "OMP_NUM_THREADS": "1",
    "RAY_AUTH_MODE": "token",
    # Of the S3-compatible server that a test starts; every process that reads or writes there needs them.
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class RayMachines:
    """A head and workers, each a machine; made with the head, `close` ends all.

    Args:
        dashboard: whether the head has Ray's dashboard, and with it the Jobs API, on port 8265 of its address.
        cpus: logical CPUs of the head.
        environment: of every process on them, beside what they have anyway.
    """

    kind = "namespaces"
    own_network = own_disks = True

    def __init__(self, *, dashboard: bool = False, cpus: int = 4, environment: Mapping[str, str] | None = None) -> None:
        self._own = dict(environment or {})
        self.base = Path(tempfile.mkdtemp(prefix="wb-"))
        """A folder that every machine sees, but for `private` in it, which each has as a disk of its own."""
        self.private = self.base / "own"
        self.private.mkdir()
        self.machines: list[Machine] = []
        self._token = secrets.token_hex(16)
        self._dashboard = dashboard
        self._made = 0
        self._switch = Switch()
        try:
            self.head = self.add(cpus)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The value for `RAY_ADDRESS`."""
        return f"{self.head.address}:{PORT}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process on these machines."""
        return {**kept_environment(self.private), **SETTINGS, "RAY_AUTH_TOKEN": self._token, **self._own}

    def machine(self) -> Machine:
        """A machine on their network that runs no Ray, which one may join later."""
        self._made += 1
        machine = Machine(f"machine{self._made}", self.private)
        self.machines.append(machine)
        self._switch.plug(machine)
        return machine

    def add(self, cpus: int = 4, resources: str = "{}") -> Machine:
        """A machine more, whose Ray has joined the cluster's; the first is the head."""
        for left in reversed(range(START_ATTEMPTS)):
            machine = self.machine()
            try:
                self.join(machine, cpus, resources)
                break
            except (RuntimeError, TimeoutError):
                self.kill(machine)
                if not left:
                    raise
        return machine

    def join(self, machine: Machine, cpus: int = 4, resources: str = "{}") -> None:
        """Starts Ray on a machine.

        Raises:
            RuntimeError: with what Ray said.
        """
        started = machine.run(command_of(self.starting(machine, cpus, resources)), self.environment, START_SECONDS)
        if started.returncode:
            raise RuntimeError(f"ray start on {machine.name} failed:\n{started.stdout}")

    def starting(self, machine: Machine, cpus: int = 4, resources: str = "{}") -> list[str]:
        """The command that starts Ray on a machine."""
        first = machine is self.machines[0]
        address = machine.address if first else self.head.address
        role = ["--head", f"--port={PORT}"] if first else [f"--address={address}:{PORT}"]
        if first:
            role += [f"--include-dashboard={str(self._dashboard).lower()}", f"--dashboard-host={machine.address}"]
        return [
            *("ray", "start", *role),
            f"--node-ip-address={machine.address}",
            f"--num-cpus={cpus}",
            f"--resources={resources}",
            "--object-store-memory=100000000",
            f"--temp-dir={self.private}/ray",
            "--include-log-monitor=false",
            "--disable-usage-stats",
        ]

    def kill(self, machine: Machine) -> None:
        """Ends a machine with all that runs on it, by SIGKILL."""
        machine.kill()
        self.machines.remove(machine)

    def cut(self, machine: Machine) -> None:
        """Pulls its cable."""
        self._switch.pull(machine)

    def heal(self, machine: Machine) -> None:
        """Plugs it in again."""
        self._switch.put_back(machine)

    def run(
        self,
        command: Sequence[str | Path],
        *,
        timeout: float,
        on: Machine | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command, beside the head if nothing else is said; "python" and "hpo" are those of these tests."""
        machine = on or self.head
        return machine.run(command_of(command), {**self._driving, **(extra or {})}, timeout)

    def start(
        self,
        command: Sequence[str | Path],
        log: IO[str],
        *,
        on: Machine | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Starts a command as `run` does, and does not wait for it; what it prints goes to `log`."""
        machine = on or self.head
        return machine.start(command_of(command), {**self._driving, **(extra or {})}, log)

    def end(self, process: subprocess.Popen[str]) -> None:
        """Ends what `start` started, if it still runs."""
        if process.poll() is None:
            signal_it(process, signal.SIGKILL)
        process.wait(READY_SECONDS)

    def close(self) -> None:
        """Ends every machine and the network; nothing is left."""
        for machine in reversed(self.machines):
            with suppress(OSError):
                machine.kill()
        self.machines.clear()
        self._switch.close()
        shutil.rmtree(self.base, ignore_errors=True)

    @property
    def _driving(self) -> dict[str, str]:
        return {**self.environment, "RAY_ADDRESS": self.address}


def kept_environment(private: Path) -> dict[str, str]:
    """This process's environment for others, without what is its own, and with a machine's own folders."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "WARMBAND_STORE"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(private / "tmp"),
        "WARMBAND_HOME": str(private / "home"),
        # Else workers, at Ray's niceness of 15, give way to all other tests, and get next to nothing of a busy machine.
        "RAY_worker_niceness": "0",
    }


def executable(name: str) -> str:
    """A program of the environment that these tests run in."""
    return str(Path(sys.executable).with_name(name))


def until(there: Callable[[], object], what: str, seconds: float, *, every: float = 0.25) -> None:
    """Waits for something, and looks for it every so many seconds.

    Raises:
        TimeoutError: it did not come.
    """
    deadline = time.monotonic() + seconds
    while not there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(every)


def command_of(command: Sequence[str | Path]) -> list[str]:
    """A command whose "python", "hpo" and "ray" are those of these tests."""
    first, *rest = map(str, command)
    return [executable(first) if first in ("python", "hpo", "ray") else first, *rest]
