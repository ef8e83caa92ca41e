"""Checkpoint storage of workers: waits and retries with growing pauses while the storage is away.

A disk that is full, a share that is unmounted, an object store that does not answer or refuses its keys: what failed
may work a minute later, and the training that was done is worth the wait.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from trainers import checkpoint, storage
from trainers.checkpoint import UNKNOWN, File, Manifest
from trainers.errors import StorageError, UnsavedError

PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds between one attempt and the next; the last is repeated."""

GIVE_UP_SECONDS = 600.0
"""How long the place may be away; the job then stops, and can be resumed."""

ASK_SECONDS = 0.5
"""How often a pause asks whether it is to end."""

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


BACK = "the storage of checkpoints is back"


def away(reason: str) -> str:
    """The message about a storage that is away."""
    return f"waiting for the storage of checkpoints, {GIVE_UP_SECONDS / 60:.0f} minutes at most: {reason}"


def saying(notify: Callable[[str], None]) -> Callable[[str], None]:
    """Tells once why the storage is away, and once that it is back: a `tell` of `PatientStorage`."""
    told = False

    def tell(reason: str) -> None:
        nonlocal told
        if bool(reason) is not told:
            told = not told
            notify(away(reason) if told else BACK)

    return tell


def _never() -> bool:
    return False


class PatientStorage:
    """Reads and writes checkpoints, and waits while their place is away.

    Args:
        tell: is told at each attempt that fails why it did, and "" when one works after that; None logs it.
        given_up: asked while it waits: whether nobody wants it any more.
    """

    def __init__(self, tell: Callable[[str], None] | None = None, given_up: Callable[[], bool] = _never) -> None:
        self._tell = tell or saying(logger.warning)
        self._given_up = given_up

    def read(self, uri: str, manifest: Manifest = UNKNOWN, part: str = "") -> bytes:
        """See `checkpoint.load`.

        Raises:
            StorageError: the place has been away for `GIVE_UP_SECONDS`, or nobody wants the file any more.
            CheckpointError: the place is there, and the file is not, or it is cut short or changed.
        """
        return self.attempt(partial(_load, uri, manifest, part))

    def read_span(self, uri: str, part: str, at: int, size: int) -> bytes:
        """See `checkpoint.load_span`; raises as `read` does."""
        return self.attempt(partial(_load_span, uri, part, at, size))

    def check_sizes(self, uri: str, manifest: Manifest) -> None:
        """See `checkpoint.check_sizes`; raises as `read` does."""
        self.attempt(partial(_check_sizes, uri, manifest))

    def write(self, uri: str, data: bytes) -> Manifest:
        """See `checkpoint.save`.

        Raises:
            UnsavedError: the place has been away for `GIVE_UP_SECONDS`, or nobody wants the file any more.
        """
        return self._saved(partial(checkpoint.save, uri, data))

    def write_part(self, uri: str, name: str, data: bytes | memoryview) -> File:
        """See `checkpoint.save_part`, for each worker of a gang; raises as `write` does."""
        return self._saved(partial(checkpoint.save_part, uri, name, data))

    def seal(self, uri: str, files: Iterable[File]) -> Manifest:
        """See `checkpoint.seal`, for one worker, once all have written their parts; raises as `write` does."""
        return self._saved(partial(checkpoint.seal, uri, tuple(files)))

    def _saved(self, act: Callable[[], _T]) -> _T:
        try:
            return self.attempt(act)
        except StorageError as error:
            raise UnsavedError(str(error)) from error

    def attempt(self, act: Callable[[], _T]) -> _T:
        """The result of `act`, at the first attempt that raises no StorageError.

        Raises:
            StorageError: that of the last attempt.
        """
        deadline = time.monotonic() + GIVE_UP_SECONDS
        pauses = itertools.chain(PAUSES, itertools.repeat(PAUSES[-1]))
        told = False
        while True:
            try:
                result = act()
            except StorageError as error:
                self._tell(str(error))
                told = True
                if time.monotonic() >= deadline:
                    raise StorageError(f"{error} (tried for {GIVE_UP_SECONDS / 60:.0f} minutes)") from error
                if not self._paused(min(deadline, time.monotonic() + next(pauses))):
                    raise
                continue
            if told:
                self._tell("")
            return result

    def _paused(self, until: float) -> bool:
        """Waits; returns whether somebody still wants what is waited for."""
        while (left := until - time.monotonic()) > 0:
            if self._given_up():
                return False
            time.sleep(min(ASK_SECONDS, left))
        return not self._given_up()


def _load(uri: str, manifest: Manifest, part: str) -> bytes:
    storage.check_job_folder(uri)
    return checkpoint.load(uri, manifest, part)


def _load_span(uri: str, part: str, at: int, size: int) -> bytes:
    storage.check_job_folder(uri)
    return checkpoint.load_span(uri, part, at, size)


def _check_sizes(uri: str, manifest: Manifest) -> None:
    storage.check_job_folder(uri)
    checkpoint.check_sizes(uri, manifest)
