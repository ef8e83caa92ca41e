"""Python in a process of its own, with this tree before all others, and what it said."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def python(
    *arguments: str,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    typed: str | None = None,
    seconds: float = 240.0,
) -> subprocess.CompletedProcess[str]:
    """Runs Python with arguments, of which code may be indented; without an environment it has this process's."""
    return subprocess.run(
        [sys.executable, *map(textwrap.dedent, arguments)],
        cwd=folder,
        env={**(os.environ if environment is None else environment), "PYTHONPATH": str(ROOT)},
        input=typed,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def printed(code: str, *arguments: str, **options: object) -> str:
    """Run code with the options of `python`, check that it exits with 0, and return its output."""
    done = python("-c", code, *arguments, **options)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
