"""The log of a trial: what its program prints on one worker, in a file that stays when the gang has ended."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from trainers import storage
from trainers.home import home

FOLDER = "logs"
"""Name of the folder of all logs, in `WARMBAND_HOME`."""
MARKS = b"\x1d"
"""Bytes by which a program that is kept loaded ends a trial's output, which nobody prints."""
TURN = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] units \d+ to \d+ on worker \d+: ")
"""The beginning of the line before the output of one start of a program."""
_LOG = re.compile(r"(.+?)(\.worker-\d+)?\.log")
"""Names of logs, as `trial_log` makes them."""


def turn_text(start: int, stop: int, rank: int, command: Sequence[str]) -> str:
    """Return the text that begins the output of one start of a program, behind its time; `TURN` finds it.

    Args:
        start: units that the trial has.
        stop: the unit that it stops at.
        rank: of the worker.
        command: that the worker starts.
    """
    return f"units {start + 1} to {stop} on worker {rank}: {shlex.join(command)}"


def trial_log(folder: str, job: str, trial: str, rank: int = 0) -> Path:
    """Return the file of a trial's output on one worker.

    Args:
        folder: of all logs.
        job: the job's name, or that of another folder of checkpoints.
        trial: the trial's id.
        rank: the worker.
    """
    return Path(folder, job, f"{trial}.log" if rank == 0 else f"{trial}.worker-{rank}.log")


def remove_logs(job: str, trials: Container[str]) -> list[str]:
    """Remove the logs of a job's trials on this machine; what else is in their folder stays.

    Args:
        job: the job's name, or that of another folder of checkpoints.
        trials: their ids.

    Returns:
        The paths of what stays.

    Raises:
        StorageError: one is there and cannot be removed.
    """
    folder = str(Path(logs_folder(), job))
    if storage.is_link(folder):
        return [folder]
    for name in storage.names(folder):
        found = _LOG.fullmatch(name)
        if found and found[1] in trials:
            storage.delete(storage.join(folder, name))
    storage.delete_if_empty(folder)
    return [storage.join(folder, name) for name in storage.names(folder)]


def logs_folder() -> str:
    """Return the folder of all logs on this machine."""
    return str(home() / FOLDER)


def job_of(save_to: str) -> str:
    """Return the name of the folder that holds a trial's own folder of checkpoints: the job's name.

    Args:
        save_to: URI of a checkpoint, "s3://bucket/models/churn-1/churn-1-003/000009" say.
    """
    parts = [part for part in save_to.partition("?")[0].split("/") if part]
    return parts[-3] if len(parts) >= 3 else "runs"


class OutputLog:
    """A log that is written by one worker; where that fails, the program goes on without.

    Args:
        address: of the worker's node.
        folder: of all logs, as the driver has it; a worker that may not write there takes its own.
        most: bytes of an assignment that are kept.
    """

    def __init__(self, address: str, folder: str, most: int) -> None:
        self._address, self._folder, self._most = address, folder, most
        self._file: IO[bytes] | None = None
        self._written = 0
        self.place = ""
        """Where it is, as "address:path"; empty where it cannot be written."""

    def begin(self, job: str, trial: str, rank: int, said: str) -> None:
        """Go on with the log of a trial, behind a line that says what begins."""
        self.close()
        self.place, self._written = "", 0
        for folder in dict.fromkeys((self._folder or logs_folder(), logs_folder())):
            path = trial_log(folder, job, trial, rank)
            with suppress(OSError):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = path.open("ab", buffering=0)
                self.place = f"{self._address}:{path}"
                self._put(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {said}\n".encode(errors="replace"))
                return

    def write(self, chunk: bytes) -> None:
        """Add output."""
        if self._written >= self._most:
            return
        self._written += len(chunk)
        self._put(chunk.translate(None, MARKS))
        if self._written >= self._most:
            self._put(f"\n[more than {self._most >> 20} MiB are not kept]\n".encode())

    def close(self) -> None:
        """End it."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def _put(self, data: bytes) -> None:
        if self._file is not None:
            with suppress(OSError, ValueError):  # A full disk; closed meanwhile.
                self._file.write(data)
