"""Checkpoint files: which of those that were there when it started a program opened, and when files were written."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from heapq import nlargest
from itertools import islice
from pathlib import Path

MOST_FOLDERS = 1_000
"""Folders that are watched; a program with more of them may read one that is not."""

_ACCESS, _MODIFY, _CLOSE_WRITE, _CLOSE_NOWRITE, _OPEN = 0x1, 0x2, 0x8, 0x10, 0x20
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IS_FOLDER, _ONLY_FOLDERS = 0x4000, 0x40000000, 0x01000000
_WATCHED = _ACCESS | _MODIFY | _CLOSE_WRITE | _CLOSE_NOWRITE | _OPEN | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT = struct.Struct("iIII")

_File = tuple[int, str]
"""The watch of a folder, and a name in it."""
LOOKED_AT = 200
"""Files that are looked at while a program runs, and newest files that are noted."""
MOST_LOOKING = 0.01
"""The part of a program's time that looks at its files may take while no pause is near."""
NO_CHECKPOINTS = (".log", ".lock", ".pid", ".csv", ".tsv", ".jsonl")
"""How the names of files end that programs open for other reasons."""


class CheckpointReads:
    """A watch on the files of a folder, by Linux's inotify; elsewhere nobody knows what is read.

    A file that is only written, and one that was written anew before it was read, is not read. Folders do not count,
    nor do logs and locks. If no file is read, and one is opened and stays open, nobody knows: the program may map it,
    or append to it.

    Args:
        folder: of checkpoints, before the program starts.
        apart: paths of files that this worker reads itself.
    """

    def __init__(self, folder: Path, apart: Collection[str] = ()) -> None:
        self._files: dict[_File, str] = {}
        """The files that were there and have not been written since, and their paths in the folder."""
        self._opened: set[_File] = set()
        """Those of them that were opened, for whatever purpose."""
        self._moved: dict[int, str] = {}
        self._read: set[str] = set()
        self._blind = False
        self._answer: frozenset[str] | None = None
        self._queue = -1
        self._over = False
        try:
            self._watch(folder, apart)
        except (OSError, AttributeError, TypeError):  # Another system, or as many watches as a user may have.
            self.close()

    def found(self) -> frozenset[str] | None:
        """Return the paths of the files that were read so far, within the folder; None if that cannot be known.

        The first answer stays: what follows is the program's training.
        """
        if not self._over:
            with suppress(OSError):
                self._take()
            known = self._queue >= 0 and (self._read or not (self._blind or self._opened))
            self._answer = frozenset(self._read) if known else None
            self.close()
        return self._answer

    def close(self) -> None:
        """End the watch."""
        self._over = True
        queue, self._queue = self._queue, -1
        if queue >= 0:
            os.close(queue)

    def _watch(self, folder: Path, apart: Collection[str]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for number, (place, folders, files) in enumerate(os.walk(folder)):
            if number == MOST_FOLDERS:
                self._blind = True
                break
            watch = libc.inotify_add_watch(self._queue, os.fsencode(place), _WATCHED | _ONLY_FOLDERS)
            if watch < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")
            for name in files:
                path = os.path.join(place, name)
                if path not in apart and not name.endswith(NO_CHECKPOINTS):
                    self._files[watch, name] = os.path.relpath(path, folder)
            self._blind |= any(_leads_out(os.path.join(place, name), folder) for name in (*folders, *files))

    def _take(self) -> None:
        """Takes the events that have come."""
        while True:
            try:
                data = os.read(self._queue, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, cookie, size = _EVENT.unpack_from(data, at)
                at += _EVENT.size + size
                name = os.fsdecode(data[at - size : at].rstrip(b"\0"))
                self._blind |= bool(mask & _OVERFLOW)
                if not mask & _IS_FOLDER:
                    self._event((watch, name), mask, cookie)

    def _event(self, file: _File, mask: int, cookie: int) -> None:
        if mask & _MOVED_TO and cookie in self._moved:
            self._files[file] = self._moved.pop(cookie)
        elif file in self._files:
            if mask & (_ACCESS | _CLOSE_NOWRITE):
                self._read.add(self._files[file])
            elif mask & _OPEN:
                self._opened.add(file)
            else:  # It is another file from here on.
                path = self._files.pop(file)
                self._opened.discard(file)
                if mask & _MOVED_FROM:
                    self._moved[cookie] = path


class CheckpointWrites:
    """The files of a folder that are written while a program runs, by the times that their node gives them.

    Args:
        folder: of checkpoints, before the program starts.
        noted: the unit at which each file that is there was written, by its path in the folder.
        clock: returns the seconds that looking takes from.
    """

    def __init__(self, folder: Path, noted: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._noted, self._clock = folder, noted, clock
        self._before = dict(self._times())
        self._next = clock()

    def newest(self, *, surely: bool = True) -> float | None:
        """Return when a file was written last, of the first `LOOKED_AT`; None if none was.

        Args:
            surely: look at any price. Otherwise looking takes `MOST_LOOKING` of the time, and the answer may be None.
        """
        began = self._clock()
        if not surely and began < self._next:
            return None
        newest = self._newest()
        self._next = began + (self._clock() - began) / MOST_LOOKING
        return newest

    def _newest(self) -> float | None:
        times = (at for path, at in islice(self._times(), LOOKED_AT) if self._before.get(path) != at)
        return max(times, default=None)

    def units(self, unit_at: Callable[[float], float | None]) -> dict[str, float]:
        """Return the unit at which each file was written, of the `LOOKED_AT` newest files.

        Args:
            unit_at: returns the unit at a time of this run; None if it is not known.
        """
        found = {}
        for path, at in nlargest(LOOKED_AT, self._times(), key=lambda each: each[1]):
            unit = self._noted.get(path) if self._before.get(path) == at else unit_at(at)
            if unit is not None:
                found[path] = unit
        return found

    def _times(self) -> Iterator[tuple[str, float]]:
        for place, _, files in os.walk(self._folder):
            for name in files:
                path = os.path.join(place, name)
                with suppress(OSError):
                    yield os.path.relpath(path, self._folder), os.stat(path).st_mtime


def _leads_out(path: str, folder: Path) -> bool:
    """Whether a path is a link to what is not in the folder."""
    if not os.path.islink(path):
        return False
    within = os.path.join(os.path.realpath(folder), "")
    return not os.path.realpath(path).startswith(within)
