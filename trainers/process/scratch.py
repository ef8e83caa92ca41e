"""A temporary folder of a process, deleted with it or, after a kill, by the next one."""

from __future__ import annotations

import fcntl
import os
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from trainers.deletion import HELD, delete_abandoned_scratch, delete_scratch

_PREFIX = "warmband-"


class Scratch:
    """Made with the object; those that killed processes of this user left on this machine go then.

    It goes with `close`, at the latest as the process ends, which waits for no thread after a second Ctrl-C.

    Args:
        name: what its name begins with, after "warmband-".
    """

    def __init__(self, name: str) -> None:
        place = _place()
        delete_abandoned_scratch(place, _PREFIX)
        self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-", dir=place)
        # Locked before anybody can find it: one that is there and not locked is left.
        new = Path(self.path, f"{HELD}.new")
        self._held = new.open("wb")
        with suppress(OSError):  # A file system without locks: then nobody else gets one either.
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(new.with_name(HELD))
        self._deletion = weakref.finalize(self, delete_scratch, self.path)

    def close(self) -> None:
        """Delete it."""
        self._deletion()
        self._held.close()


def _place() -> str:
    """Python's folder for temporary files, and TMPDIR's also where its disk is full.

    Python would take another then, which nobody named and may hold nothing large, and what is left in the full one
    would stay.
    """
    named = os.environ.get("TMPDIR", "")
    usable = os.path.isdir(named) and os.access(named, os.W_OK | os.X_OK)
    return os.path.abspath(named) if usable else tempfile.gettempdir()
