"""Files of an object store, fetched to a disk several at a time, with an end to waiting."""

from __future__ import annotations

import queue
import shutil
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainers.errors import DataError, StorageError
from trainers.storage import shown

AT_ONCE = 16
"""Files on their way at the same time; most of a small one's time is waiting for an answer."""
ATTEMPTS = 3
"""For each file; the client of an object store asks again by itself, too."""
PAUSE_SECONDS = 1.0
"""Before a second attempt, and twice that before a third."""
STALL_SECONDS = 120.0
"""How long it may take until something comes of any file."""
FETCH_SECONDS = 3600.0
"""How long all files of a channel may take."""

_PIECE = 1 << 20
_LOOK_SECONDS = 0.05
_SPARE_BYTES = 64 << 20
"""What a disk has to have left for all else."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file: its path in the file system, its bytes, and its name from the folder on."""

    source: str
    size: int
    name: str


def fetch(where: str, filesystem: Any, wanted: Sequence[Wanted], to: Path) -> None:
    """Fetches files into a folder, under their names.

    Args:
        where: the URI of their folder, for messages.
        filesystem: pyarrow's, which has them.
        wanted: each once.
        to: is made where it is not there.

    Raises:
        DataError: a file is gone, or not what it was.
        StorageError: one cannot be read or written, nothing came for `STALL_SECONDS`, or not all in `FETCH_SECONDS`.
    """
    _check_room(where, wanted, to)
    for parent in sorted({(to / file.name).parent for file in wanted} | {to}):
        parent.mkdir(parents=True, exist_ok=True)
    work = _Work(where, filesystem, wanted, to)
    for _ in range(min(AT_ONCE, len(wanted))):
        # None of them keeps the process from ending where a store never answers.
        threading.Thread(target=work.run, name="fetching a channel", daemon=True).start()
    work.wait()


class _Work:
    """Files that are still to be fetched, and how far that is; see `fetch`."""

    def __init__(self, where: str, filesystem: Any, wanted: Sequence[Wanted], to: Path) -> None:
        self._where, self._filesystem, self._to = shown(where), filesystem, to
        self._files, self._bytes = len(wanted), sum(file.size for file in wanted)
        self._left: queue.SimpleQueue[Wanted] = queue.SimpleQueue()
        for file in wanted:
            self._left.put(file)
        self._lock = threading.Lock()
        self._underway: dict[str, Wanted] = {}
        self._done, self._came, self._came_at = 0, 0, time.monotonic()
        self._problem: Exception | None = None
        self._over = threading.Event()

    def run(self) -> None:
        """Fetches one after the other, until none is left or one cannot be had."""
        while not self._over.is_set():
            try:
                file = self._left.get_nowait()
            except queue.Empty:
                return
            try:
                with self._lock:
                    self._underway[file.name] = file
                self._fetch(file)
                with self._lock:
                    del self._underway[file.name]
                    self._done += 1
            except Exception as error:
                self._problem = self._problem or error
                self._over.set()
            if self._done == self._files:
                self._over.set()

    def wait(self) -> None:
        """Returns when all are there.

        Raises:
            DataError, StorageError: see `fetch`.
        """
        began = time.monotonic()
        while not self._over.wait(_LOOK_SECONDS):
            now, got = time.monotonic(), f"{_size(self._came)} of {_size(self._bytes)}"
            with self._lock:
                late = next(iter(self._underway.values()), None)
            if now - self._came_at > STALL_SECONDS and late is not None:
                self._over.set()
                raise StorageError(
                    f"{self._named(late)} did not come: nothing for {STALL_SECONDS:.0f} s, after {got} of its folder; "
                    "check the endpoint, the network and the store's limits"
                )
            if now - began > FETCH_SECONDS:
                self._over.set()
                raise StorageError(
                    f"folder {self._where!r} took more than {FETCH_SECONDS:.0f} s: {got} came; deal it out with "
                    "'ShardedByS3Key', pack small files into larger ones, or give a folder that all nodes mount"
                )
        if self._problem is not None:
            raise self._problem

    def _fetch(self, file: Wanted) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._copy(file)
            except FileNotFoundError:
                raise DataError(
                    f"{self._named(file)} is gone since the channel was opened; put it back, or begin a new job"
                ) from None
            except OSError as error:  # pyarrow's own, too
                if attempt == ATTEMPTS or self._over.is_set():
                    reason = shown(str(error.strerror or error))
                    raise StorageError(
                        f"{self._named(file)} cannot be fetched to {str(self._to)!r}, {ATTEMPTS} times: {reason}; "
                        "check access to it, the network and that disk"
                    ) from error
                time.sleep(PAUSE_SECONDS * attempt)
        return None

    def _copy(self, file: Wanted) -> None:
        size = 0
        with (
            self._filesystem.open_input_stream(file.source, compression=None) as stream,  # Else x.gz comes unpacked.
            open(self._to / file.name, "wb") as copy,
        ):
            while not self._over.is_set() and (piece := stream.read(_PIECE)):
                copy.write(piece)
                size += len(piece)
                with self._lock:
                    self._came, self._came_at = self._came + len(piece), time.monotonic()
        if size != file.size and not self._over.is_set():
            raise DataError(
                f"{self._named(file)} has {size:,} bytes now: it changed since the channel was opened; put it back, or "
                "begin a new job"
            )

    def _named(self, file: Wanted) -> str:
        return f"{file.name!r} ({file.size:,} bytes) of folder {self._where!r}"


def _check_room(where: str, wanted: Sequence[Wanted], to: Path) -> None:
    """Refuses to fill a disk, on which other processes write, too."""
    outer = next(folder for folder in (to, *to.parents) if folder.exists())
    free, need = shutil.disk_usage(outer).free, sum(file.size for file in wanted)
    if need + _SPARE_BYTES > free:
        raise StorageError(
            f"folder {shown(where)!r} needs {_size(need)}, and {str(outer)!r} on {socket.gethostname()} has "
            f"{_size(free)} left; set TMPDIR to a larger disk on every node before Ray starts, deal the folder out "
            "with 'ShardedByS3Key', or give a folder that all nodes mount"
        )


def _size(count: float) -> str:
    """Bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError("the last unit takes any")
