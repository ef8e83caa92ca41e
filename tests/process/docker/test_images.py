"""The images: their versions are the pinned ones, and what they install from is what the build sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.docker.deployment import DOCKER, PROJECT


def test_what_is_installed_is_what_the_project_needs_at_the_tested_versions(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -m ]; then echo "$@" >> {log}\n'
        f"cat /tmp/requirements.txt >> {log} 2>/dev/null || true\n"
        f'else exec {sys.executable} "$@"; fi\n'
    )
    program.chmod(0o755)
    script = DOCKER / "install.sh"
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    for step in ("packages", "warmband"):
        subprocess.run(["sh", str(script), step], env=environment, check=True, timeout=60)
    said = log.read_text().splitlines()
    assert said[0].startswith("-m pip install --no-cache-dir --constraint constraints.txt --requirement ")
    assert said[1:-1] == [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["serve"]]
    assert said[-1] == "-m pip install --no-cache-dir --no-deps ."
    assert subprocess.run(["sh", str(script)], env=environment, capture_output=True, timeout=60).returncode == 2
