"""Errors that Warmband raises on purpose, as one small tree.

    WarmbandError
    ├── ConfigurationError   a value the user gave is wrong; also a ValueError
    │   ├── JobError         a fault of the job that a trial showed: each trial would fail by it
    │   ├── LeaseError       another process drives the job
    │   ├── ConnectError     the cluster that RAY_ADDRESS names does not answer, or does not let this process in
    │   ├── RecordMissingError  the file of the record, which was there before, is not
    │   └── NoJobError       the record has no such job
    ├── DataError            a channel's data is missing, cut short or not what it says; also a ValueError
    │   ├── StorageError     the place of files cannot be read or written now; it may work later
    │   │   └── UnsavedError what was trained could not be written
    │   └── CheckpointError  a checkpoint is gone, cut short or changed; its trial can be trained again
    ├── ResourcesError       the cluster cannot hold what was asked for
    ├── GangError            a gang could not start, or was lost and did not come back
    ├── SearchError          a searcher or scheduler did not answer as it has to
    └── TrialError           one trial failed: the trainer's own message and traceback
        ├── DivergedError    its loss or parameters are no finite numbers any more
        └── BrokenWorkerError   it took its worker along: a device-side assertion, say

Each message names the field, the value and the remedy.
"""

from __future__ import annotations

import errno


class WarmbandError(Exception):
    """Base of every error raised on purpose."""


class ConfigurationError(WarmbandError, ValueError):
    """A value the user gave is wrong."""


class JobError(ConfigurationError):
    """A setting of the job is wrong, as a trial showed: each trial would fail by it, so that the job ends."""


class LeaseError(ConfigurationError):
    """Another process drives the job, and only one may."""


class RecordLostError(LeaseError):
    """The record's file was removed or replaced while a driver wrote to it; the driver ends, and removes nothing."""


class RecordMissingError(ConfigurationError):
    """The record's file is not there, though the job that is asked for was recorded in it."""


class ConnectError(ConfigurationError):
    """The cluster that `RAY_ADDRESS` names does not answer, or does not let this process in."""


class NoJobError(ConfigurationError):
    """The record has no job of that name, or has it no more."""


class NotReadyError(WarmbandError):
    """What is asked for is not there yet."""


class DataError(WarmbandError, ValueError):
    """A channel's data is missing, cut short or not what it says it is."""


class StorageError(DataError):
    """The place of files cannot be read or written at present; what failed may work later."""


class UnsavedError(StorageError):
    """All workers have trained an assignment, and its checkpoint could not be written."""


class CheckpointError(DataError):
    """A checkpoint's file is not there, or not what was written to it."""


class ResourcesError(WarmbandError):
    """The cluster cannot hold what was asked for."""


class GangError(WarmbandError):
    """A gang could not start, or was lost and did not come back."""


class SearchError(WarmbandError):
    """A searcher or a scheduler did not answer as it has to; what was trained until then is kept."""


class TrialError(WarmbandError):
    """One trial failed. `str()` is the trainer's own message.

    Args:
        message: the trainer's own message, in one line.
        traceback: the remote traceback, or an empty string where there is none.
        logs: where the worker's output is, as "address:path", or an empty string.
    """

    def __init__(self, message: str, traceback: str = "", logs: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback
        self.logs = logs

    def __reduce__(self) -> tuple[type[TrialError], tuple[str, str, str]]:
        return type(self), (str(self), self.traceback, self.logs)


class DivergedError(TrialError):
    """A trial whose loss or parameters are no finite numbers any more: training on would cost and give nothing."""


class BrokenWorkerError(TrialError):
    """A trial failed and left its worker's process of no use: CUDA answers every call with the error of one."""


def is_away(error: BaseException) -> bool:
    """Whether an error is no trial's fault but a place of files': one that is away, or a disk that is full.

    That may be any disk that a trial writes to, such as that of temporary files.
    """
    return isinstance(error, StorageError) or (
        isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    )


def in_words(error: BaseException, text: str | None = None) -> str:
    """An error's message, behind its class where it is none of ours: the message of a KeyError is the key alone.

    Args:
        error: of any kind.
        text: what is left of its message; None for all of it.
    """
    name, text = type(error).__name__, str(error) if text is None else text
    if not text:
        return name
    return text if isinstance(error, WarmbandError) else f"{name}: {text}"
