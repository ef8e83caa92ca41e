"""Deletion of a job's files, beside its record: of those that the job wrote, and no others."""

from __future__ import annotations

import socket
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hpo.jobs.files.folder import COPIES, DRIVER_LOG, MARK, has_log, is_of, is_of_begin, is_trial
from hpo.jobs.files.inputs import remove_copies
from hpo.record import JobRow, is_held
from trainers import storage
from trainers.checkpoint import PROFILES, TRACE_ENDING, remove_trial
from trainers.cluster import is_reach_marker
from trainers.errors import ConfigurationError, DataError
from trainers.home import home
from trainers.script import remove_logs


@dataclass(frozen=True, slots=True)
class _Trials(Container[str]):
    """The ids that trials of a job may have."""

    job: str

    def __contains__(self, name: object) -> bool:
        return is_trial(self.job, str(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of one job that can be removed from here.

    Args:
        job: the job's name.
        folder: where its models and copies of data are, or an empty string where they are on another machine.
        log_folder: of its driver's log, if that is on this machine and not in `folder`; else an empty string.
        elsewhere: what is left alone, on another machine or without this job's mark, in words; empty where nothing is.
    """

    job: str
    folder: str
    log_folder: str
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
        logs = str(Path(log).parent) if log and here else ""
        return cls(
            job=job.name,
            folder=folder if own else "",
            log_folder=logs if logs and logs != folder and _is_of(logs, job) else "",
            elsewhere="" if own else left,
        )

    @property
    def text(self) -> str:
        """Their description for people."""
        return self.elsewhere or f"its files in {storage.shown(self.folder)}"

    def remove(self) -> list[str]:
        """Removes what the job wrote, and the folders that are empty then; that it is gone already is no error.

        Returns:
            What else is in its folders, and stays there: paths and URIs of files that the job did not write, or of
            folders with such files.

        Raises:
            DataError: a file is there and cannot be removed.
        """
        left = []
        for folder in filter(None, (self.folder, self.log_folder)):
            self._remove_in(folder)
            left += [storage.join(folder, name) for name in storage.names(folder)]
        if self.folder:
            left += remove_logs(self.job, _Trials(self.job))
        return left

    def _remove_in(self, folder: str) -> None:
        """Removes what the job wrote in one of its folders, the mark last, so that another try knows the folder."""
        held = storage.names(folder)
        if MARK not in held:
            # A start that is killed before it writes the mark leaves these. Others may come after `of` has looked.
            for name in filter(is_of_begin, held):
                storage.delete(storage.join(folder, name))
            return
        logs = has_log(folder)
        for name in held:
            uri = storage.join(folder, name)
            if is_trial(self.job, name):
                remove_trial(uri)
            elif name == COPIES:
                remove_copies(folder)
            elif name == PROFILES:
                self._remove_traces(uri)
            elif (name == DRIVER_LOG and logs) or is_of_begin(name) or is_reach_marker(name):
                storage.delete(uri)
        storage.delete(storage.join(folder, MARK))
        storage.delete_if_empty(folder)

    def _remove_traces(self, folder: str) -> None:
        if storage.is_link(folder):
            return
        for name in storage.names(folder):
            whole = storage.drafted(name) or name
            if whole.endswith(TRACE_ENDING) and is_trial(self.job, whole.removesuffix(TRACE_ENDING)):
                storage.delete(storage.join(folder, name))
        storage.delete_if_empty(folder)


def left_text(left: list[str]) -> str:
    """Say which files were not deleted with a job.

    Args:
        left: as `Files.remove` returns them; one at least.
    """
    shown = ", ".join(storage.shown(each) for each in left[:5])
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    return f"left in place, since the job did not write it: {shown}{more}"


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
