"""A temporary folder of a process, removed with it or, after a kill, by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "warmband-"
_HELD = ".held"
"""A file that a process has locked as long as it lives."""


class Scratch:
    """Made with the object; those that killed processes of this user left on this machine go then.

    It goes with `close`, at the latest as the process ends, which waits for no thread after a second Ctrl-C.

    Args:
        name: what its name begins with, after "warmband-".
    """

    def __init__(self, name: str) -> None:
        place = _place()
        _remove_left(place)
        self._folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{name}-", dir=place, ignore_cleanup_errors=True)
        self.path = self._folder.name
        # Locked before anybody can find it: one that is there and not locked is left.
        new = Path(self.path, f"{_HELD}.new")
        self._held = new.open("wb")
        with suppress(OSError):  # A file system without locks: then nobody else gets one either.
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(new.with_name(_HELD))

    def close(self) -> None:
        """Removes it."""
        self._folder.cleanup()
        self._held.close()


def _place() -> str:
    """Python's folder for temporary files, and TMPDIR's also where its disk is full.

    Python would take another then, which nobody named and may hold nothing large, and what is left in the full one
    would stay.
    """
    named = os.environ.get("TMPDIR", "")
    usable = os.path.isdir(named) and os.access(named, os.W_OK | os.X_OK)
    return os.path.abspath(named) if usable else tempfile.gettempdir()


def _remove_left(place: str) -> None:
    for folder in Path(place).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # It lives, or another process removes it.
            if folder.lstat().st_uid != os.getuid():
                continue
            with (folder / _HELD).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
