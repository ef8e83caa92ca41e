"""The programs beside Python's packages that some tests run: `python tests/support/programs.py` names the missing ones.

It ends with 1 if there are any; with `--packages` it prints their Debian packages alone. No import of another package:
it runs before anything is installed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path


def _any(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
"""Its names, of which one is there."""

COMPOSE_SCHEMA = Path("/usr/lib/python3/dist-packages/compose/config/compose_spec.json")
"""The compose specification's schema, in Debian's docker-compose."""

PROGRAMS: dict[str, Callable[[], bool]] = {
    "chromium": _any(*CHROMIUM),
    "postgresql": lambda: bool(shutil.which("postgres") or list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))),
    "prometheus": _any("prometheus"),
    "iproute2": _any("ip"),
    "g++": _any("g++", "c++", "clang++"),
    "docker-compose": lambda: bool(shutil.which("docker-compose")) and COMPOSE_SCHEMA.exists(),
}
"""Debian's packages, and whether what tests want of each is there."""


def missing() -> list[str]:
    """Debian's packages of the programs that are not there."""
    return [package for package, there in PROGRAMS.items() if not there()]


def remedy(packages: list[str]) -> str:
    """Return a sentence on how to install the packages."""
    return f"Tests need programs that are not here. On Debian and Ubuntu: apt-get install {' '.join(packages)}"


if __name__ == "__main__":
    absent = missing()
    if "--packages" in sys.argv:
        sys.stdout.write(" ".join(absent) + "\n")
    elif absent:
        sys.exit(remedy(absent))
