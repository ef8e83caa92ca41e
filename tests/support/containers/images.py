"""The images of compose.yaml, built: `python -m tests.support.containers.images` makes those that are not there.

Those that others publish have stand-ins of their names, made of Debian's packages. `--remove` removes all.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.containers.engine import Engine, missing, place
from tests.support.docker.deployment import DOCKER, PROJECT, ROOT, pinned, read

HERE = Path(__file__).parent
DEBIAN = "localhost/warmband-debian:bookworm"
SERVICES = read("compose.yaml")["services"]
BASE = next(line.split()[1] for line in (DOCKER / "Dockerfile").read_text().splitlines() if line.startswith("FROM"))
"""The base image of docker/Dockerfile."""

OURS = f"localhost/warmband:{PROJECT['version']}"
BUILD_SECONDS = 1800.0


def stand_ins() -> dict[str, str]:
    """The Dockerfile of each published image that has a stand-in, by the image's whole name."""
    return {
        f"docker.io/{BASE}": "ray.Dockerfile",
        f"docker.io/library/{SERVICES['postgres']['image']}": "postgres.Dockerfile",
        f"docker.io/{SERVICES['prometheus']['image']}": "prometheus.Dockerfile",
    }


def build(engine: Engine, *, again: bool = False) -> dict[str, float]:
    """Makes what is not there.

    Args:
        engine: whose images.
        again: whether Warmband's own image is built, layers that did not change apart, even if it is there.

    Returns:
        The seconds that each took, by the image's name.
    """
    took: dict[str, float] = {}
    wanted = {DEBIAN: None, **stand_ins(), OURS: None}
    for name, dockerfile in wanted.items():
        if engine.has(name) and not (again and name == OURS):
            continue
        began = time.monotonic()
        if name == DEBIAN:
            _debian(engine)
        elif dockerfile is not None:
            _build(engine, name, HERE, HERE / dockerfile, f"--build-arg=RAY={pinned('ray')}")
        else:
            _build(engine, name, ROOT, DOCKER / "Dockerfile", "--layers")
        took[name] = time.monotonic() - began
    return took


def _debian(engine: Engine) -> None:
    """An image of the smallest Debian 12, whose Python is 3.11."""
    with tempfile.TemporaryDirectory(dir=engine.folder) as folder:
        root, archive = Path(folder) / "root", Path(folder) / "root.tar"
        engine.run(
            "debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", root, timeout=BUILD_SECONDS
        )
        left = ["./var/cache/apt/*", "./var/lib/apt/lists/*", "./var/log/*", "./usr/share/doc/*", "./usr/share/man/*"]
        excluded = [f"--exclude={path}" for path in left]
        engine.run("tar", "--create", f"--file={archive}", f"--directory={root}", *excluded, ".", timeout=BUILD_SECONDS)
        engine.run("podman", "import", archive, DEBIAN, timeout=BUILD_SECONDS)


def _build(engine: Engine, name: str, context: Path, dockerfile: Path, *more: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine.run(
            "buildah", "build", "--isolation=chroot", "--format=docker", "--pull-never",
            *_pip(Path(folder)), *more, f"--tag={name}", f"--file={dockerfile}", context,
            timeout=BUILD_SECONDS,
        )  # fmt: skip


def _pip(folder: Path) -> Iterator[str]:
    """Options by which a build's pip finds packages where pip does here: its settings, and the files they name."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for line in said.stdout.splitlines():
        key, _, value = line.partition("=")
        words = str(ast.literal_eval(value)).split()
        known = found.setdefault(key.rpartition(".")[2], [])
        known += [word for word in words if word not in known]
    kept = {name: found[name] for name in ("cert", "extra-index-url", "find-links", "index-url") if name in found}
    if not kept:
        return
    file = folder / "pip.conf"
    file.write_text("\n".join(["[global]", *(f"{name} = {' '.join(words)}" for name, words in kept.items()), ""]))
    yield f"--volume={file}:/etc/pip.conf:ro"
    for path in sorted({_mounted(word) for words in kept.values() for word in words}):
        if os.path.isabs(path) and os.path.exists(path):
            yield f"--volume={path}:{path}:ro"
    # In the place of PyTorch's index, which goes before what a file says.
    yield f"--build-arg=PIP_EXTRA_INDEX_URL={' '.join(kept.get('extra-index-url', []))}"


def _mounted(word: str) -> str:
    """The path that a setting needs: of an index in files, the folder above, since it links to packages beside it."""
    index = word.removeprefix("file://")
    return str(Path(index).parent) if word != index else word


def main() -> None:
    """Builds, and says what it took; or removes."""
    if why := missing():
        sys.exit(why)
    engine = Engine(place())
    if "--remove" in sys.argv:
        engine.remove()
        return
    for name, seconds in build(engine, again=True).items():
        sys.stdout.write(f"{name}: {seconds:.0f} s\n")
    sys.stdout.write(engine.run("podman", "images").stdout)


if __name__ == "__main__":
    main()
