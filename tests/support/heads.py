"""A Ray cluster that outlives its drivers, in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def head() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A cluster that outlives its drivers, and its address."""
    # Its folder's name leaves room for the names of Ray's sockets in it.
    with tempfile.TemporaryDirectory(prefix="wb", ignore_cleanup_errors=True) as folder:
        started = subprocess.Popen(
            [
                *(
                    str(Path(sys.executable).parent / "ray"),
                    "start",
                    "--head",
                    "--block",
                    "--port=0",
                    "--num-cpus=8",
                    "--include-dashboard=false",
                ),
                *("--node-ip-address=127.0.0.1", f"--temp-dir={folder}", "--disable-usage-stats"),
            ],
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield started, joined_at(started)
        finally:
            started.kill()
            started.wait(30)


def joined_at(head: subprocess.Popen[str]) -> str:
    """The address that `ray start` prints."""
    assert head.stdout is not None
    for line in head.stdout:
        if "--address='" in line:
            return line.partition("--address='")[2].partition("'")[0]
    raise AssertionError("ray start ended without an address")
