"""The folder of a job's files, and the mark in it that names its job."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpo.record import JobRow
from hpo.search import PROBE, UNTUNED
from trainers import storage
from trainers.checking import some_of
from trainers.errors import ConfigurationError, DataError, StorageError
from trainers.home import home

MARK = ".warmband-job.json"
"""Name of the mark: a file that names the job by what no other has."""

FOLDER_ID = "folder_id"
"""Key of a job's spec: what the mark in its folder says."""

_LOGS = "logs"
"""Key of the mark: whether the folder holds the log of a driver in the background."""

COPIES = "inputs"
"""Name of the folder in it with copies of inputs that another process cannot open."""

DRIVER_LOG = "driver.log"
"""Name of the file in it with the output of a driver in the background, in job folders within `WARMBAND_HOME`."""

OWN_FOLDERS = ("serve", "logs", "models", "data", "checks", "runs")
"""Names of the folders in `WARMBAND_HOME` that hold no job's folder."""

CLAIMED = "claimed"
"""Key of a job's summary: whether a driver has made its folder."""


def check_free(folder: str, name: str) -> None:
    """Refuse a folder that holds files: a job may remove what is in its folder, so it begins in a new or an empty one.

    Args:
        folder: where a new job's files would go.
        name: the job's.

    Raises:
        ConfigurationError: it holds files of another job, or of anybody.
        DataError: it cannot be looked at.
    """
    if (own := _own_of_home(folder)) is not None:
        raise ConfigurationError(
            f"{folder!r} is to be the job's folder, and {str(own)!r} is for Warmband's own files; give another "
            "storage_path, or leave it out"
        )
    held = storage.names(folder)
    if MARK in held:
        raise _taken(folder, name, _read(folder))
    if foreign := _foreign_names(held):
        raise _foreign(folder, foreign)


def _own_of_home(folder: str) -> Path | None:
    """Return the folder of Warmband's own files that a job's folder would be, or be in; None where there is none."""
    path = storage.local_path(folder)
    if path is None:
        return None
    place, at_home = Path(os.path.realpath(path)), Path(os.path.realpath(home()))
    if place == at_home or place in at_home.parents:
        return at_home
    if at_home not in place.parents:
        return None
    first, *rest = place.relative_to(at_home).parts
    own = first in OWN_FOLDERS or (first == "jobs" and not rest)
    return at_home / first if own else None


def is_trial(job: str, name: str) -> bool:
    """Return whether a name is that of a trial of a job, or of the folder of its checkpoints."""
    number = name.removeprefix(f"{job}-")
    return name in (UNTUNED, PROBE) or (number != name and number.isdigit())


def was_claimed(job: JobRow) -> bool:
    """Whether a driver before has made the folder of a job; one whose folder has no mark may have removed it again."""
    return bool(job.spec.get(FOLDER_ID) and job.summary.get(CLAIMED))


def claim(folder: str, job: JobRow, *, begun: bool, logs: bool = False) -> None:
    """Makes the folder of a job that is driven from here, and marks it; or sees that it is the job's.

    Args:
        folder: of its files.
        job: its row.
        begun: whether it has been there before, so that it is not made anew.
        logs: whether a driver in the background writes its log there.

    Raises:
        ConfigurationError: the folder is another job's, or holds files that are no job's.
        StorageError: it is not there though it should be, or cannot be read or written.
    """
    mine = job.spec.get(FOLDER_ID, "")
    held = storage.names(folder)
    if MARK in held:
        mark = _read(folder)
        if mark.get("id") != mine:
            raise _taken(folder, job.name, mark)
        if logs and not mark.get(_LOGS):
            storage.write(storage.join(folder, MARK), json.dumps({**mark, _LOGS: True}).encode())
        return
    made = False
    if not begun:
        if foreign := _foreign_names(held):
            raise _foreign(folder, foreign)
        made = not storage.is_there(folder)
        storage.make_folder(folder)
    elif not storage.is_there(folder):
        raise StorageError(
            f"{storage.shown(folder)!r}, the folder of the job's models, is not there; mount its disk, or put it back. "
            "If they are gone for good, make an empty one: what is needed of them is trained again"
        )
    if mine:  # A job of an earlier version has none.
        mark = {"job": job.name, "id": mine, "created_at": job.created_at, _LOGS: logs}
        try:
            storage.write(storage.join(folder, MARK), json.dumps(mark).encode())
        except StorageError:
            if made:  # Without the mark it would be nobody's.
                storage.delete_if_empty(folder)
            raise


def is_of(folder: str, job: JobRow) -> bool:
    """Return whether a folder is a job's own: it bears the job's mark, or holds nothing.

    Raises:
        DataError: it cannot be looked at.
    """
    held = storage.names(folder)
    if MARK in held:
        return bool(_read(folder).get("id") == job.spec.get(FOLDER_ID, ""))
    return not _foreign_names(held)


def has_log(folder: str) -> bool:
    """Return whether a driver in the background has written its log into a job's folder.

    Raises:
        StorageError: the folder's mark cannot be read.
    """
    return bool(_read(folder).get(_LOGS))


def is_of_begin(name: str) -> bool:
    """Return whether a file of a job's folder is what a start leaves that is killed before it has written the mark."""
    return storage.drafted(name) == MARK or storage.is_probe(name)


def _foreign_names(held: Sequence[str]) -> list[str]:
    return [name for name in held if not is_of_begin(name)]


def _read(folder: str) -> dict[str, Any]:
    """The mark of a folder; empty where it is cut short."""
    try:
        mark = json.loads(storage.read(storage.join(folder, MARK)))
    except StorageError:
        raise
    except (DataError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}


def _foreign(folder: str, names: Sequence[str]) -> ConfigurationError:
    return ConfigurationError(
        f"{storage.shown(folder)!r} is to be the job's folder, and holds files that are not the job's "
        f"({some_of(names)}); give another name (--name, or job_name in Python) or storage_path, or move them"
    )


def _taken(folder: str, name: str, mark: dict[str, Any]) -> ConfigurationError:
    made = mark.get("created_at")
    since = f" of {datetime.fromtimestamp(made, UTC):%Y-%m-%d %H:%M} UTC" if isinstance(made, int | float) else ""
    return ConfigurationError(
        f"{storage.shown(folder)!r} holds the models of another job {mark.get('job', name)!r}{since}, which is in "
        "another record or was deleted without its files; give another name (--name, or job_name in Python) or "
        "storage_path, or move the folder"
    )
