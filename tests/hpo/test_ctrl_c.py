"""Ctrl-C, typed on a job's own terminal: the job stops, says so, and leaves no process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpo.store import Store

SCRIPT = """
    import sys
    sys.path.insert(0, {root!r})
    from tests.support.boosting import CHANNELS, make
    make(workers=1, max_jobs=5000, console=None).fit(CHANNELS, job_name="interrupted")
"""


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for temporary files whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="wb") as folder:
        yield Path(folder)


@pytest.mark.fault
@pytest.mark.parametrize("when", ["starting", "the first gang is starting", " after "])
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_stops_the_job_and_leaves_nothing(home: Path, short_folder: Path, when: str, times: int) -> None:
    """A process of its own with its own Ray, on a terminal of its own: Ctrl-C is typed, and goes to the whole group."""
    root = str(Path(__file__).parents[2])
    environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "NO_COLOR")}
    environment |= {"TMPDIR": str(short_folder), "WARMBAND_HOME": str(home), "TERM": "xterm-256color"}
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT.format(root=root))]
    with terminal_of(command, environment) as (process, terminal):
        seen = read_until(terminal, when, 240.0)
        os.write(terminal, b"\x03")
        if times == 2:
            seen += read_until(terminal, "Ctrl-C again stops now", 30.0)
            os.write(terminal, b"\x03")
        seen += read_until(terminal, None, 120.0)
        code = process.wait(timeout=30)
    assert code in (1, -signal.SIGINT)  # As Python ends on KeyboardInterrupt; `hpo tune` exits with 130.
    assert "Ctrl-C again stops now" in seen
    assert "To look again: hpo describe interrupted" in seen
    with Store(f"sqlite:///{home}/warmband.db") as store:
        job = store.job("interrupted")
        trials = store.trials("interrupted")
    assert (job.status, job.reason) == ("Stopped", "interrupted by Ctrl-C")
    if times == 1:
        assert all(trial.ended_at is not None for trial in trials)
        assert bool(job.summary["best"]) == (when == " after ")
    deadline = time.monotonic() + 20
    while left := processes_of(home):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    assert not list(short_folder.glob("warmband-*"))


@contextlib.contextmanager
def terminal_of(command: list[str], environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process with a terminal of its own, 80 columns by 24 lines; gives both, the terminal as a file descriptor."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    # It becomes the leader of a session, and `its` its terminal, so that typing Ctrl-C is a signal to its group.
    login = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", login, *command],
        env=environment,
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal: int, text: str | None, seconds: float) -> str:
    """What a process writes to its terminal until `text` is in it, or, for None, until it ends."""
    seen, deadline = "", time.monotonic() + seconds
    while text is None or text not in seen:
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {text!r} and saw {seen[-2000:]!r}"
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            seen += os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # So Linux says that nobody has the other end open any more.
            break
    return seen


def processes_of(home: Path) -> list[str]:
    """Processes whose environment names this home: the job's own Ray, and its workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) != os.getpid() and str(home).encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command.strip():
                    found.append(command)
        except OSError:
            continue
    return found
