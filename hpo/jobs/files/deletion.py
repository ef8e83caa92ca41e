"""Deletion of a job's files, beside its record."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hpo.jobs.files.folder import is_of
from hpo.record import JobRow, is_held
from trainers import storage
from trainers.errors import ConfigurationError, DataError
from trainers.home import home
from trainers.script import logs_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of one job that can be removed from here.

    Args:
        folder: where its models and copies of data are, or an empty string where they are on another machine.
        log: its driver's log, if that is on this machine.
        output: the folder of what its trials' programs printed on this machine, which may not be there.
        elsewhere: what is left alone, on another machine or without this job's mark, in words; empty where nothing is.
    """

    folder: str
    log: Path | None
    output: Path
    elsewhere: str

    @classmethod
    def of(cls, job: JobRow) -> Self:
        """The files of a job."""
        folder = storage.join(job.spec.get("storage_path") or f"{home()}/jobs", job.name)
        host, log = job.driver.get("host"), job.driver.get("log")
        here = host in (None, socket.gethostname())
        there = here or "://" in folder or Path(folder).is_dir()
        own = there and _is_of(folder, job)
        left = (
            f"{folder}, which is not marked as this job's"
            if there
            else f"models in {folder} on {host}, which stay there"
        )
        output = Path(logs_folder(), job.name)
        driver = Path(log) if log and here else None
        return cls(folder=folder if own else "", log=driver, output=output, elsewhere="" if own else left)

    @property
    def text(self) -> str:
        """Their description for people."""
        return self.elsewhere or f"its files in {storage.shown(self.folder)}"

    def remove(self) -> None:
        """Removes them; that they are gone already is no error.

        Raises:
            DataError: they are there and cannot be removed.
        """
        if self.folder:
            storage.delete_folder(self.folder)
        if self.log is not None:
            storage.delete(str(self.log))
            with suppress(OSError):  # Another store's job of that name may have its files there.
                self.log.parent.rmdir()
        if self.folder and self.output.is_dir():
            for each in self.output.glob("*.log"):
                storage.delete(str(each))
            with suppress(OSError):  # It holds what is none of the job's.
                self.output.rmdir()


def _is_of(folder: str, job: JobRow) -> bool:
    """Whether a folder is a job's own; where it cannot be looked at, who removes it will hear why."""
    try:
        return is_of(folder, job)
    except DataError:
        return True


def check_over(job: JobRow) -> None:
    """Refuses a job that runs, or is about to.

    Raises:
        ConfigurationError: it does.
    """
    if is_held(job) or (job.status in ("InProgress", "Stopping") and not job.lease and not job.lost):
        raise ConfigurationError(
            f"job {job.name!r} is {job.status}, and cannot be deleted; first run: hpo stop {job.name}"
        )
