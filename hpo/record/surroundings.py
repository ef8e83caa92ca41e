"""The surroundings of a job: its versions and its machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("warmband", "ray", "numpy", "torch", "xgboost", "xgboost_ray")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_GPUS = Path("/proc/driver/nvidia/gpus")


def environment() -> dict[str, Any]:
    """For the record: the driver's, whose versions workers on other machines should share.

    Returns:
        "python", the versions of what is installed by its name, "commit", of the repository that the working directory
        is in, where that is Git's, "platform"; and of this machine "cpus", how many this
        process may use, "memory_bytes", and "gpus" of NVIDIA.
    """
    return {
        "python": platform.python_version(),
        **dict(_versions()),
        **({"commit": commit} if (commit := commit_of(Path.cwd())) else {}),
        "platform": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": len(list(_GPUS.iterdir())) if _GPUS.is_dir() else 0,
    }


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def commit_of(folder: Path) -> str:
    """The commit that a folder's Git repository has checked out; empty where it is in none. Git need not be there."""
    try:
        root = next(each for each in (folder, *folder.parents) if (each / ".git").exists())
        place = root / ".git"
        if place.is_file():  # A worktree, or a submodule.
            place = root / place.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")
        head = (place / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head if _COMMIT.fullmatch(head) else ""
        shared = place / "commondir"
        common = place / shared.read_text(encoding="utf-8").strip() if shared.exists() else place
        return _commit_in(common, head.removeprefix("ref: "))
    except (OSError, StopIteration, ValueError):
        return ""


def _commit_in(repository: Path, reference: str) -> str:
    """The commit of a reference, which is in a file of its own or among packed ones."""
    loose, packed = repository / reference, repository / "packed-refs"
    if loose.is_file():
        lines = [f"{loose.read_text(encoding='utf-8').strip()} {reference}"]
    else:
        lines = packed.read_text(encoding="utf-8").splitlines()
    found = (line.partition(" ")[0] for line in lines if line.endswith(f" {reference}"))
    return next((each for each in found if _COMMIT.fullmatch(each)), "")
