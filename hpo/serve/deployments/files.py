"""Files of deployments, one an endpoint, which are there when the server has been started again."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import psutil

from trainers.deletion import delete_file

State: TypeAlias = Literal["DEPLOYING", "RUNNING", "DEPLOY_FAILED"]
"""Ray Serve's words."""

START_SECONDS = 120.0
"""Within which a process that was started has to have written who it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """An endpoint that this machine's server was asked for.

    Args:
        name: the endpoint's.
        job: whose model it has.
        trial: which of the job's.
        by: who asked for it.
        at: when, in unix seconds.
        state: how far it has come.
        reason: why it failed.
        cluster: address of the Ray that was started for endpoints; empty where RAY_ADDRESS names one.
        pid: the process that deploys it, later the one that the cluster ends with; 0 until it has begun.
        keys: environment variables by which other processes are let into that cluster.
        began: when that process began, in unix seconds, since pids are used again.
    """

    name: str
    job: str
    trial: str
    by: str
    at: float
    state: State = "DEPLOYING"
    reason: str = ""
    cluster: str = ""
    pid: int = 0
    began: float = 0.0
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def entry(self) -> dict[str, str]:
        """Environment variables of a process that joins its cluster; Ray reads some of them when it is imported."""
        return {**self.keys, "RAY_ADDRESS": self.cluster}

    @property
    def lives(self) -> bool:
        """Whether its process is there."""
        if not self.pid:
            return time.time() - self.at < START_SECONDS
        try:
            return bool(abs(psutil.Process(self.pid).create_time() - self.began) < 1.0)
        except psutil.Error:
            return False


class DeploymentFiles:
    """The files of one server.

    Args:
        folder: of the server's own files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "endpoints"
        self._folder.mkdir(parents=True, exist_ok=True)

    def read(self) -> dict[str, Deployment]:
        """All deployments, by the endpoints' names."""
        found = {}
        for file in self._folder.glob("*.json"):
            with suppress(OSError, ValueError, TypeError):  # It was dropped meanwhile.
                found[file.stem] = Deployment(**json.loads(file.read_text("utf-8")))
        return found

    def write(self, one: Deployment) -> None:
        """Writes one, in the place of what the file said before."""
        draft = self._folder / f".{one.name}.{os.getpid()}"
        draft.touch(0o600)  # It has the cluster's key.
        draft.write_text(json.dumps(asdict(one)), "utf-8")
        os.replace(draft, self._folder / f"{one.name}.json")

    def drop(self, name: str) -> None:
        """Forgets one."""
        delete_file(self._folder / f"{name}.json")

    def log(self, name: str) -> Path:
        """What the process of a deployment prints."""
        return self._folder / f"{name}.log"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone in joining and ending the Ray that was started for endpoints; a process that dies lets go of it."""
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
