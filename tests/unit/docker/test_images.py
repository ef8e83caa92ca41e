"""The images: their versions are the pinned ones, and what they install from is what the build sees."""

from __future__ import annotations

import fnmatch
import re
import sys

import pytest

from tests.support.docker.deployment import DOCKER, PROJECT, ROOT, every, files, pinned, read

KINDS = ("Dockerfile", "Dockerfile.gpu")


def instructions(name: str) -> list[str]:
    """A Dockerfile's, each in one line."""
    text = (DOCKER / name).read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_ray_s_images_are_of_the_pinned_ray_and_python() -> None:
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    allowed = {f"rayproject/ray:{pinned('ray')}-{python}-{kind}" for kind in ("cpu", "cu128")}
    assert instructions("Dockerfile")[0] == f"FROM rayproject/ray:{pinned('ray')}-{python}-cpu"
    assert instructions("Dockerfile.gpu")[0] == f"FROM rayproject/ray:{pinned('ray')}-{python}-cu128"
    found = set()
    for path in files():
        found |= set(re.findall(r"rayproject/ray:[\w.-]+", path.read_text()))
    assert found == allowed
    assert read("kuberay/raycluster.yaml")["spec"]["rayVersion"] == pinned("ray")


def test_our_images_are_of_this_version() -> None:
    version = PROJECT["version"]
    for path in files():
        for tag in re.findall(r"\bwarmband:([\w.-]+)", path.read_text()):
            # A user and a password of PostgreSQL's look like it.
            assert tag in (version, f"{version}-gpu") or path.suffix == ".sh", path


@pytest.mark.parametrize("name", KINDS)
def test_an_image_needs_no_root_and_says_whether_it_is_well(name: str) -> None:
    lines = instructions(name)
    assert not [line for line in lines if line.startswith("USER")]  # rayproject/ray's own user is `ray`.
    assert not [line for line in lines if "sudo" in line or "apt" in line]
    assert [line for line in lines if line.startswith("HEALTHCHECK") and '"docker/healthy.py", "raylet"' in line]
    assert "ENV RAY_AUTH_MODE=token" in lines


def test_the_two_differ_in_the_image_below_and_pytorch_alone() -> None:
    cpu, gpu = (instructions(name)[1:] for name in KINDS)
    assert [line for line in cpu if "PIP_EXTRA_INDEX_URL" not in line] == gpu


def test_the_build_sees_what_it_copies_and_no_secret() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    seen = [line[1:] for line in ignored if line.startswith("!")]
    assert "*" in ignored
    for path in seen:
        assert (ROOT / path).exists(), path
    for name in KINDS:
        for line in instructions(name):
            if line.startswith("COPY"):
                *sources, _ = [word for word in line.split()[1:] if not word.startswith("--")]
                assert all(source == "." or source in seen for source in sources), line
    assert not [path for path in seen if fnmatch.fnmatch("docker/secrets", f"{path}*")]
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} - {"tests"}
    assert packages <= set(seen)


def test_no_image_is_the_latest() -> None:
    for name in ("compose.yaml", "compose.gpu.yaml", "cluster-aws.yaml", "kuberay/raycluster.yaml"):
        for key, value in every(read(name)):
            if key in ("image", "worker_image"):
                assert re.search(r":v?\d", value), value
