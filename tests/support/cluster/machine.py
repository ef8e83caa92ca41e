"""Machines that are Linux namespaces: own network, processes, host name and disk, ended with their first process."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

READY_SECONDS = 30.0

DISK = 2 * 2**30
"""Bytes of a machine's own disk, which is in memory."""

_SWITCH = """set -e
ip link set lo up
ip link add bridge type bridge
ip link set bridge up
ip address add {gateway}/24 dev bridge
echo ready
read -r _ || true
"""

# Ends when the test process does, whatever way: `read` then finds its input closed, and the kernel ends all processes
# of a process namespace with the first. bash also reaps what daemons leave behind.
_MACHINE = """set -e
hostname {name}
mount --make-rprivate /
mount -t tmpfs -o size={disk} none {private}
mount -t tmpfs -o size=2g none /dev/shm
mkdir -m 1777 {private}/tmp
echo 127.0.0.1 localhost >{private}/hosts
echo 127.0.1.1 {name} >>{private}/hosts
mount --bind {private}/hosts /etc/hosts
: >{private}/resolv.conf
mount --bind {private}/resolv.conf /etc/resolv.conf
ip link set lo up
echo ready
read -r _ || true
"""


class Switch:
    """A bridge that connects machines, in its own network namespace without a way out."""

    def __init__(self) -> None:
        self.network = "10.77.0"
        self._process = _first(
            ["unshare", "--net", "--fork", "--kill-child"], _SWITCH.format(gateway=self.address(254))
        )
        self.pid = _child(self._process.pid)
        self._ports = 0

    def address(self, number: int) -> str:
        """An address of its network."""
        return f"{self.network}.{number}"

    def plug(self, machine: Machine) -> None:
        """Connects a machine, and gives it its address."""
        self._ports += 1
        machine.port, machine.address = f"port{self._ports}", self.address(self._ports)
        _ip(self.pid, f"link add {machine.port} type veth peer name eth0 netns {machine.pid}")
        _ip(self.pid, f"link set {machine.port} master bridge up")
        _ip(machine.pid, f"address add {machine.address}/24 dev eth0")
        _ip(machine.pid, "link set eth0 up")
        # Ray finds a machine's own address by asking which one it would reach the world from.
        _ip(machine.pid, f"route add default via {self.address(254)}")

    def pull(self, machine: Machine) -> None:
        """Pulls a machine's cable: nothing goes in or out, and nobody is told."""
        _ip(self.pid, f"link set {machine.port} down")

    def put_back(self, machine: Machine) -> None:
        """Plugs it in again."""
        _ip(self.pid, f"link set {machine.port} up")

    def close(self) -> None:
        """Ends it; no link is left."""
        _end(self._process)


class Machine:
    """A machine.

    Args:
        name: its host name.
        private: a folder that every machine has as a disk of its own, with `tmp` in it; all others are shared.
    """

    def __init__(self, name: str, private: Path) -> None:
        self.name = name
        self.private = private
        self.address = self.port = ""
        alone = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._process = _first(alone, _MACHINE.format(name=name, private=private, disk=DISK))
        self.pid = _child(self._process.pid)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command there and waits for it; what it still runs after `timeout` seconds is killed.

        Raises:
            TimeoutError: with what it printed.
        """
        process = self.start(command, environment, stdout=subprocess.PIPE)
        try:
            said, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            signal_it(process, signal.SIGKILL)
            said, _ = process.communicate()
            raise TimeoutError(
                f"{' '.join(command)} on {self.name} took over {timeout:g} s and said:\n{said}"
            ) from None
        return subprocess.CompletedProcess(command, process.returncode, said, "")

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: int | IO[str]
    ) -> subprocess.Popen[str]:
        """Starts a command there; both its outputs go to `stdout`. `signal_it` sends it signals."""
        enter = ["nsenter", "--target", str(self.pid), "--net", "--mount", "--uts", "--pid", "--", *command]
        return subprocess.Popen(
            enter, env=dict(environment), stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.STDOUT, text=True
        )

    def processes(self, title: str = "") -> dict[int, str]:
        """Its processes whose command line holds `title`, by their numbers outside of it."""
        space = os.readlink(f"/proc/{self.pid}/ns/pid") if self.alive else ""
        return {pid: line for pid, line in _running() if title in line and _space(pid) == space}

    def fill(self) -> None:
        """Lets nothing more be written to its own disk, which has no byte more than what is on it."""
        disk = os.statvfs(f"/proc/{self.pid}/root{self.private}")
        self._resize((disk.f_blocks - disk.f_bfree) * disk.f_frsize)

    def free(self) -> None:
        """Makes room there again."""
        self._resize(DISK)

    def _resize(self, size: int) -> None:
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--"]
        remount = ["mount", "-o", f"remount,size={size}", str(self.private)]
        subprocess.run([*enter, *remount], check=True, timeout=READY_SECONDS)

    def kill(self) -> None:
        """Ends all its processes at once, by SIGKILL."""
        _end(self._process)


def signal_it(process: subprocess.Popen[str], number: int) -> None:
    """Sends a signal to a command that `Machine.start` started: `nsenter` waits for it and passes none on."""
    with_children = children(process.pid)
    for pid in with_children or [process.pid]:
        os.kill(pid, number)


def number_inside(pid: int) -> int:
    """The number of a process on its own machine."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("NSpid:")]
    return int(line.split()[-1])


def possible() -> bool:
    """Whether machines of this kind can be made here: it takes root's rights, and a kernel with these namespaces."""
    try:
        with tempfile.TemporaryDirectory() as folder, closing(Switch()) as switch:
            machine = Machine("probe", Path(folder))
            try:
                switch.plug(machine)
            finally:
                machine.kill()
    except (OSError, RuntimeError, subprocess.SubprocessError):
        return False
    return True


def _first(unshare: Sequence[str], script: str) -> subprocess.Popen[str]:
    """The first process of new namespaces, once it is ready."""
    process = subprocess.Popen(
        [*unshare, "bash", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    late = threading.Timer(READY_SECONDS, process.kill)
    late.start()
    said = ""
    try:
        for line in process.stdout:
            if line == "ready\n":
                return process
            said += line
    finally:
        late.cancel()
    process.wait(READY_SECONDS)
    raise RuntimeError(f"no namespaces: {said.strip()}")


def _end(process: subprocess.Popen[str]) -> None:
    for pid in children(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait(READY_SECONDS)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _ip(pid: int, arguments: str) -> None:
    subprocess.run(
        ["nsenter", "--target", str(pid), "--net", "ip", *arguments.split()], check=True, timeout=READY_SECONDS
    )


def _child(pid: int) -> int:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if found := children(pid):
            return found[0]
        time.sleep(0.01)
    raise RuntimeError(f"process {pid} started nothing within {READY_SECONDS:g} s")


def children(pid: int) -> list[int]:
    """The processes that one started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _running() -> Iterator[tuple[int, str]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            yield int(entry), line.strip()


def _space(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""
