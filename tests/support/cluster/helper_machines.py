"""The same by Ray's own `Cluster` helper, where machines of namespaces cannot be made: one network, one disk."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from tests.support.cluster.machine import children
from tests.support.cluster.ray_machines import SETTINGS, START_SECONDS, RayMachines, command_of, kept_environment


class HelperMachine:
    """A node of the helper's: a raylet with an address of its own in 127.0.0.0/8."""

    def __init__(self, name: str, address: str, raylet: int) -> None:
        self.name = name
        self.address = address
        self.pid = raylet

    @property
    def alive(self) -> bool:
        """Whether its raylet runs."""
        return Path(f"/proc/{self.pid}").exists()

    def processes(self, title: str = "") -> dict[int, str]:
        """The raylet and the workers that it started, as `Machine.processes` gives them."""
        found = {}
        for pid in (self.pid, *children(self.pid)):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if title in line:
                found[pid] = line
        return found


class HelperMachines:
    """A substitute for `RayMachines` on one network and one disk: nothing can be cut off or hidden."""

    kind = "ray.cluster_utils.Cluster"
    own_network = own_disks = False

    def __init__(self, *, dashboard: bool = False, cpus: int = 4) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="wb-"))
        self.private = self.base / "own"
        (self.private / "tmp").mkdir(parents=True)
        self.environment = {
            **kept_environment(self.private),
            **SETTINGS,
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
        }
        self.machines: list[HelperMachine] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cluster.helper_machines", str(dashboard)],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self.head = self.add(cpus)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, cpus: int = 4, resources: str = "{}") -> HelperMachine:
        """See `RayMachines.add`."""
        made = self._ask(do="add", number=len(self.machines) + 2, cpus=cpus, resources=json.loads(resources))
        self.address = made["cluster"]
        machine = HelperMachine(made["address"], made["address"], made["raylet"])
        self.machines.append(machine)
        return machine

    def kill(self, machine: HelperMachine) -> None:
        """See `RayMachines.kill`."""
        pids = machine.processes()
        self._ask(do="kill", address=machine.address)
        for pid in pids:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGKILL)
        self.machines.remove(machine)

    def run(
        self,
        command: Sequence[str | Path],
        *,
        timeout: float,
        on: object = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """See `RayMachines.run`."""
        return subprocess.run(
            command_of(command),
            env={**self.environment, "RAY_ADDRESS": self.address, **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(
        self, command: Sequence[str | Path], log: IO[str], *, on: object = None, extra: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """See `RayMachines.start`."""
        environment = {**self.environment, "RAY_ADDRESS": self.address, **(extra or {})}
        return subprocess.Popen(
            command_of(command),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self, process: subprocess.Popen[str]) -> None:
        """See `RayMachines.end`."""
        process.kill()
        process.wait(START_SECONDS)

    def close(self) -> None:
        """See `RayMachines.close`."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(START_SECONDS)
        finally:
            self._process.kill()
            shutil.rmtree(self.base, ignore_errors=True)

    def _ask(self, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(order)}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise RuntimeError(f"the helper ended with {self._process.wait()} when it was asked to {order}")


Machines = RayMachines | HelperMachines


def _serve(dashboard: bool) -> None:
    """Runs the helper, in a process of its own, since it changes the one that it runs in; ends when its input does."""
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    nodes: dict[str, Any] = {}
    try:
        for line in sys.stdin:
            order = json.loads(line)
            if order["do"] == "kill":
                cluster.remove_node(nodes.pop(order["address"]), allow_graceful=False)
                _answer({})
                continue
            address = f"127.0.0.{order['number']}"
            node = nodes[address] = cluster.add_node(
                node_ip_address=address,
                num_cpus=order["cpus"],
                resources=order["resources"],
                object_store_memory=100_000_000,
                include_dashboard=dashboard and not nodes,
            )
            raylet = node.all_processes["raylet"][0].process.pid
            _answer({"address": address, "raylet": raylet, "cluster": cluster.address})
    finally:
        cluster.shutdown()


def _answer(values: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(values)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve(sys.argv[1] == "True")
