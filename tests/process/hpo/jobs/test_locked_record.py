"""SIGTERM and Ctrl-C to a job whose record in SQLite another process holds locked."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.driving import answer, row
from tests.support.hpo.jobs.driver import (
    expected,  # noqa: F401  # A fixture.
    resumed,
)
from tests.support.processes import ROOT
from tests.support.refusals import mentions
from tests.support.rows import until

JOB = """
import os, sys
from pathlib import Path
from hpo.record import writer
from tests.support.driving import CHANNELS, Counting, row, tuner
from tests.support.rows import until

folder, number = Path(sys.argv[1]), int(sys.argv[2])
writer.HURRIED_WITHIN = 1.0

def signalled():
    until(lambda: bool(row(folder).summary.get("runs")))
    (folder / "ready").touch()
    until((folder / "locked").exists)
    os.kill(os.getpid(), number)

tuner(folder, (Counting(3, signalled),)).fit(CHANNELS, job_name="job")
"""


@pytest.mark.fault
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_job_that_is_to_stop_while_its_record_is_locked_ends_says_why_and_is_resumed(
    expected: dict[str, Any],
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", JOB, str(tmp_path), str(int(number))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        try:
            until((tmp_path / "ready").exists, 120)
            with closing(sqlite3.connect(tmp_path / "record.db", isolation_level=None, timeout=60)) as other:
                other.execute("BEGIN EXCLUSIVE")
                (tmp_path / "locked").touch()
                _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1, said
    mentions(said, "locked", str(tmp_path / "record.db"), "hpo resume job")
    assert row(tmp_path).status == "InProgress"
    resumed(tmp_path, "job")
    assert answer(tmp_path, "job") == expected
