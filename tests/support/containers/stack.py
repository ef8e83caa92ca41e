"""compose.yaml's services in containers: Docker's own `docker-compose` runs the file, over Podman."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import yaml_text
from tests.support.containers.engine import Engine
from tests.support.docker.deployment import DOCKER
from tests.support.ports import free_port

PROJECT = "warmband-test"
UP_SECONDS = 300.0
BEAT_SECONDS = 2.0
"""How often each container's health is asked for."""

Health = dict[str, tuple[str, str]]
"""Status (such as `running`) and health (such as `healthy`) of each container, by service and number."""


class Stack:
    """The services of compose.yaml, from the images that there are.

    Published ports are changed to some that nobody has here; nothing else is.

    Args:
        engine: with the images.
        folder: an empty one, which takes the place of docker/.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self.folder = folder
        for name in ("prometheus", "grafana"):
            shutil.copytree(DOCKER / name, folder / name)
        shutil.copy(DOCKER / "make-secrets.sh", folder)
        engine.run("sh", folder / "make-secrets.sh")
        # Debian's docker-compose, 1.29, does not know `name` yet.
        text = re.sub(r"^name: .*\n", "", (DOCKER / "compose.yaml").read_text(), flags=re.MULTILINE)
        self.ports = {int(port): free_port() for port in re.findall(r'"127\.0\.0\.1:(\d+):\1"', text)}
        for port, free in self.ports.items():
            text = text.replace(f'"127.0.0.1:{port}:{port}"', f'"127.0.0.1:{free}:{port}"')
        (folder / "compose.yaml").write_text(text)
        self.services: dict[str, Any] = yaml_text.load(text)["services"]

    def compose(self, *arguments: str, timeout: float = UP_SECONDS) -> str:
        """Run a `docker-compose` command; return its output."""
        return self._engine.run(
            "docker-compose", f"--project-name={PROJECT}", *arguments, cwd=self.folder, timeout=timeout
        ).stdout

    def up(self, *services: str, workers: int) -> None:
        """Starts services and what they wait for; compose waits for the health of each where the file says so."""
        self.compose("up", "--detach", "--no-build", f"--scale=worker={workers}", *services)

    def name(self, service: str, number: int = 1) -> str:
        """A container's name."""
        return f"{PROJECT}_{service}_{number}"

    def within(self, service: str, *command: str, number: int = 1, check: bool = True) -> str:
        """Run a command in a container; return its output."""
        return self._engine.run("podman", "exec", self.name(service, number), *command, check=check).stdout

    def secret(self, name: str) -> str:
        """One that make-secrets.sh made."""
        return (self.folder / "secrets" / name).read_text()

    def volume(self, name: str) -> Path:
        """The folder of a volume, on this machine."""
        found = self._engine.run("podman", "volume", "inspect", f"{PROJECT}_{name}", "--format", "{{.Mountpoint}}")
        return Path(found.stdout.strip())

    def logs(self, service: str, number: int = 1) -> str:
        """Return the output of a container."""
        done = self._engine.run("podman", "logs", self.name(service, number), check=False)
        return done.stdout + done.stderr

    def health(self) -> Health:
        """Of all containers."""
        said = self._engine.run("podman", "ps", "--all", "--format", "{{.Names}}").stdout.split()
        names = [name for name in said if name.startswith(PROJECT)]
        if not names:
            return {}
        found: Health = {}
        for container in json.loads(self._engine.run("podman", "container", "inspect", *names).stdout):
            state = container["State"]
            found[container["Name"].removeprefix(f"{PROJECT}_")] = (
                state["Status"],
                (state.get("Health") or {}).get("Status") or "unknown",
            )
        return found

    def processes(self, service: str, number: int = 1) -> list[str]:
        """The command lines of a container's processes."""
        return self._engine.run("podman", "top", self.name(service, number), "args", check=False).stdout.splitlines()[
            1:
        ]

    def kill(self, service: str, number: int = 1) -> None:
        """Ends a container as a machine's power does: all of its processes, at once, without a word."""
        self._engine.run("podman", "kill", "--signal=KILL", self.name(service, number))

    def crash(self, service: str, number: int = 1) -> None:
        """Has a container's first process die of itself, as for want of memory: what restarts containers sees to it."""
        found = self._engine.run("podman", "inspect", self.name(service, number), "--format", "{{.State.Pid}}")
        os.kill(int(found.stdout), signal.SIGKILL)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Has health checks asked for: Podman leaves that to systemd's timers, and there need not be a systemd."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(BEAT_SECONDS):
                for name, (status, _) in self.health().items():
                    if status == "running":
                        self._engine.run("podman", "healthcheck", "run", f"{PROJECT}_{name}", check=False)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def down(self) -> None:
        """Ends all, and removes its volumes."""
        self.compose("down", "--volumes", "--timeout=5")


@contextmanager
def running(engine: Engine, folder: Path) -> Iterator[Stack]:
    """A stack that is up as soon as it is told, with Docker's API and health checks; and down at the end."""
    with engine.service():
        stack = Stack(engine, folder)
        stack.down()  # What an earlier run left.
        with stack.beating():
            try:
                yield stack
            finally:
                stack.down()


def until(there: Callable[[], Any], what: str, seconds: float, every: float = 0.5) -> Any:
    """Wait until `there` returns something true; return it.

    Raises:
        TimeoutError: it did not.
    """
    deadline = time.monotonic() + seconds
    while not (found := there()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(every)
    return found
