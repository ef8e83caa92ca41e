"""Ctrl-C and SIGTERM to a job whose output nobody reads, so that it waits for ever where it prints."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support.rows import until

PIPE_SIZE = 1031
"""`fcntl.F_SETPIPE_SZ`, of Linux alone."""

JOB = """
from rich.console import Console
from tests.support.boosting import CHANNELS, make
make(workers=0, max_jobs=5000, console=Console()).fit(CHANNELS, job_name="blocked")
"""


@pytest.mark.fault
@pytest.mark.skipif(sys.platform != "linux", reason="pipes of a size of one's own")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_job_stops_that_waits_for_somebody_to_read_its_output(home: Path, number: signal.Signals) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, PIPE_SIZE, 4096)
    root = str(Path(__file__).parents[4])
    with subprocess.Popen(
        [sys.executable, "-c", JOB],
        stdout=writer,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        try:
            until(lambda: _waits(process.pid, writer), 120)
            process.send_signal(number)
            process.wait(30)
        finally:
            process.kill()
            os.close(reader)
            os.close(writer)
    with Store() as store:
        assert store.job("blocked").status == "Stopped"


def _waits(pid: int, writer: int) -> bool:
    """Fill the pipe once the job is recorded, and return whether a thread of the process waits to write into it."""
    with Store() as store:
        if not store.jobs():
            return False
    own = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)  # Not the job's: that waits.
    try:
        while True:
            os.write(own, b"x")
    except BlockingIOError:
        os.close(own)
    tasks = Path(f"/proc/{pid}/task").glob("*/syscall")
    return any(task.read_text().startswith("1 0x1 ") for task in tasks)
