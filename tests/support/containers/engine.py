"""Podman and Buildah with images, containers and settings of the tests' own: nothing lies among the user's."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = {
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "docker-compose": "docker-compose",
    "podman": "podman",
    "runc": "runc",
    "netavark": "/usr/lib/podman/netavark",
    "aardvark-dns": "/usr/lib/podman/aardvark-dns",
    "catatonit": "catatonit",
}
"""Debian's packages, and the program of each."""

PLACE = "WARMBAND_CONTAINERS"
"""The variable that says where images are kept from one run to the next."""


def missing() -> str:
    """Why containers cannot be run here, in a sentence with the remedy; empty if they can."""
    if os.geteuid() != 0:
        return "images are made and run as root"
    absent = [package for package, program in PROGRAMS.items() if shutil.which(program) is None]
    if absent:
        return f"needs programs: apt-get install --no-install-recommends {' '.join(absent)}"
    return ""


def place() -> Path:
    """The folder of images and containers: some GB."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(os.environ.get(PLACE, cache / "warmband-containers")).absolute()


class Engine:
    """Runs their programs, which all know the same images.

    Args:
        folder: where all of it is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._socket = folder / "podman.sock"
        folder.mkdir(parents=True, exist_ok=True)
        storage, containers = folder / "storage.conf", folder / "containers.conf"
        storage.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n')
        containers.write_text(_settings())
        self.environment = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(storage),
            "CONTAINERS_CONF": str(containers),
            "DOCKER_HOST": f"unix://{self._socket}",
        }

    def run(
        self,
        *command: str | Path,
        timeout: float = 120.0,
        check: bool = True,
        cwd: Path | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """A command's result.

        Raises:
            AssertionError: it failed, and was not to.
        """
        done = subprocess.run(
            [str(word) for word in command],
            env={**self.environment, **(extra or {})},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def has(self, image: str) -> bool:
        """Whether there is an image of this name."""
        return self.run("podman", "image", "exists", image, check=False).returncode == 0

    @contextmanager
    def service(self) -> Iterator[None]:
        """Answers Docker's API, at the address that `environment` names."""
        self._socket.unlink(missing_ok=True)
        with (self.folder / "service.log").open("w") as log:
            command = ["podman", "system", "service", "--time=0", f"unix://{self._socket}"]
            process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 30
            while not self._socket.exists():
                there = process.poll() is None and time.monotonic() < deadline
                assert there, (self.folder / "service.log").read_text()
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(30)

    def remove(self) -> None:
        """Removes every container, volume and image, and the folder."""
        self.run("podman", "system", "reset", "--force", timeout=600)
        shutil.rmtree(self.folder, ignore_errors=True)


def _settings() -> str:
    """Those of Podman: no limit above what this process may set, and names of images without a registry are local."""
    limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    most = {"nofile": 1 << 16, "nproc": 1 << 15}
    given = {}
    for name, number in limits.items():
        _, hard = resource.getrlimit(number)
        given[name] = most[name] if hard == resource.RLIM_INFINITY else min(hard, most[name])
    ulimits = ", ".join(f'"{name}={value}:{value}"' for name, value in given.items())
    return (
        f"[containers]\ndefault_ulimits = [{ulimits}]\n"
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        "compat_api_enforce_docker_hub = false\n"
    )
