"""The surroundings of a job: its versions and its machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("warmband", "ray", "numpy", "torch", "xgboost", "xgboost_ray")
_GPUS = Path("/proc/driver/nvidia/gpus")


def environment() -> dict[str, Any]:
    """For the record: the driver's, whose versions workers on other machines should share.

    Returns:
        "python", the versions of what is installed by its name, "platform"; and of this machine "cpus", how many this
        process may use, "memory_bytes", and "gpus" of NVIDIA.
    """
    return {
        "python": platform.python_version(),
        **dict(_versions()),
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
