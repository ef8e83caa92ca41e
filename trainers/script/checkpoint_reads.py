"""Reads of checkpoint files: whether a program opened one of those that were there when it started."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Collection
from contextlib import suppress
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


class CheckpointReads:
    """A watch on the files of a folder, by Linux's inotify; elsewhere nobody knows what is read.

    A file that is only written, and one that was written anew before it was read, is not read. Folders do not count.

    Args:
        folder: of checkpoints, before the program starts.
        apart: paths of files that this worker reads itself.
    """

    def __init__(self, folder: Path, apart: Collection[str] = ()) -> None:
        self._files: set[_File] = set()
        """The files that were there and have not been written since."""
        self._opened: set[_File] = set()
        """Those of them that were opened, for whatever purpose."""
        self._moved: dict[int, _File] = {}
        self._read, self._blind = False, False
        self._answer: bool | None = None
        self._queue = -1
        self._over = False
        try:
            self._watch(folder, apart)
        except (OSError, AttributeError, TypeError):  # Another system, or as many watches as a user may have.
            self.close()

    def found(self) -> bool | None:
        """Return whether one of the files was opened for reading so far; None if that cannot be known.

        The first answer stays: what follows is the program's training.
        """
        if not self._over:
            with suppress(OSError):
                self._take()
            self._read = self._read or bool(self._opened)
            known = self._queue >= 0 and (self._read or not self._blind)
            self._answer = self._read if known else None
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
            self._files |= {(watch, name) for name in files if os.path.join(place, name) not in apart}
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
            del self._moved[cookie]
            self._files.add(file)
        elif file in self._files:
            if mask & (_ACCESS | _CLOSE_NOWRITE):
                self._read = True
            elif mask & _OPEN:
                self._opened.add(file)
            else:  # It is another file from here on.
                self._files.discard(file)
                self._opened.discard(file)
                if mask & _MOVED_FROM:
                    self._moved[cookie] = file


def _leads_out(path: str, folder: Path) -> bool:
    """Whether a path is a link to what is not in the folder."""
    if not os.path.islink(path):
        return False
    within = os.path.join(os.path.realpath(folder), "")
    return not os.path.realpath(path).startswith(within)
