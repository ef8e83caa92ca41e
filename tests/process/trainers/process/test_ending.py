"""A process that hangs in C, after the last of its Python code, is ended all the same."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
HANGS = """
import ctypes
from trainers.process import ending

libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.pause, ctypes.c_void_p), None, None)
ending.SECONDS = 1
"""
"""`exit` calls `pause`, which returns for a signal alone, as the destructors of Ray's core are called."""


def ended(code: str, seconds: float) -> int:
    """The exit status of a process that runs the code; `TimeoutExpired` where it hangs."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=seconds).returncode


def test_a_process_that_hangs_at_its_end_is_ended_by_a_signal() -> None:
    assert ended(f"{HANGS}ending.end_surely()\nending.end_surely()", 60) == -signal.SIGALRM


def test_without_it_the_process_stays() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        ended(HANGS, 4)


def test_a_process_that_ends_by_itself_ends_as_it_would() -> None:
    assert ended("import sys\nfrom trainers.process import ending\nending.end_surely()\nsys.exit(3)", 60) == 3
