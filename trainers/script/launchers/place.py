"""The place of a worker among those of its gang, and what it starts there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainers.script.placeholders import Fillings

PORTS = 1
"""Free ports that each worker has to find."""
RANK_WRAPPER = Path(__file__).parents[1] / "module" / "warmband_rank.py"
"""The wrapper of a program's processes, of which a copy lies beside the program; see there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A worker among those of its gang.

    Args:
        rank: of the worker; also that of its host, since each worker is a host in SageMaker's words.
        world_size: workers of the gang.
        hosts: the address of each worker's node, by rank.
        ports: `PORTS` free ports of each worker, by rank.
        cpus: of this worker.
        gpus: of this worker.
        processes: program processes of each worker.
        listening: ports in `machines`, by rank, where they are no longer the first of `ports`.
    """

    rank: int
    world_size: int
    hosts: tuple[str, ...]
    ports: tuple[tuple[int, ...], ...]
    cpus: int
    gpus: int
    processes: int = 1
    listening: tuple[int, ...] = ()

    @property
    def master(self) -> str:
        """Address of rank 0's node."""
        return self.hosts[0]

    @property
    def master_port(self) -> int:
        """Rank 0's port, where the processes of a program meet."""
        return self.ports[0][0]

    @property
    def machines(self) -> str:
        """All workers as LightGBM's `machines` has them, by rank: "10.0.0.1:5000,10.0.0.2:5001"."""
        ports = self.listening or tuple(first for first, *_ in self.ports)
        return ",".join(f"{in_address(host)}:{port}" for host, port in zip(self.hosts, ports, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a worker starts.

    Args:
        command: argv.
        environment: beside what environment.py gives; where both name a variable, this one is right.
        role: "worker", "chief" or "server"; the last serves for ever, parameters or the steps that a chief gives it,
            and ends when the others have.
    """

    command: tuple[str, ...]
    environment: dict[str, str]
    role: str = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherOptions:
    """What a user may say of a launcher, and what a launcher has to know of its process.

    Args:
        arguments: of the launcher itself, such as `("--mixed_precision", "bf16")` of accelerate, as `start_of` finds
            them behind its name. They stand behind those that Warmband gives, so that they win.
        parameter_servers: workers that serve parameters, of the launcher "tensorflow".
        environment: variables of the program, those of the user included.
        as_root: whether the worker runs as root, which mpirun wants to be told.
        fillings: of a trial, for placeholders of a command line.
    """

    arguments: tuple[str, ...] = ()
    parameter_servers: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    as_root: bool = False
    fillings: Fillings = field(default_factory=Fillings)


Launcher = Callable[[Sequence[str], Place, LauncherOptions], Start | None]
"""Gives what a worker starts for a program, (entry point, *arguments); None where it starts nothing itself."""


def common(place: Place) -> dict[str, str]:
    """Variables of all launchers, which give way to the user's own."""
    return {"OMP_NUM_THREADS": str(max(1, place.cpus // place.processes)), "PYTHONUNBUFFERED": "1"}


def is_python(program: Sequence[str]) -> bool:
    """Whether a program is a Python file."""
    return program[0].endswith(".py")


def runnable(program: Sequence[str]) -> tuple[str, ...]:
    """The words that run a program: a Python file by this Python, any other as it is."""
    return (sys.executable, *program) if is_python(program) else tuple(program)


def in_address(host: str) -> str:
    """A host as it stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host


def meeting(place: Place) -> dict[str, str]:
    """Variables by which torch.distributed and others find each other: one process a worker."""
    return {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.world_size),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": place.master,
        "MASTER_PORT": str(place.master_port),
    }
