"""Entries of a folder that hold until a moment, which all processes of a server share."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from hpo.serve.security.secret_file import write_secret
from trainers.deletion import delete_file

KEPT_SECONDS = 60.0
"""For which an entry is kept beyond its end: another process may be about to say how long it holds."""


class Expiring:
    """Entries, each a file that was last changed when it ends.

    Args:
        folder: it need not be there yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, text: str, until: float) -> None:
        """Adds an entry, and removes those that have ended.

        Args:
            name: letters and digits.
            text: that `take` gives back.
            until: unix seconds.

        Raises:
            ConfigurationError: it cannot be written.
        """
        write_secret(self._folder / name, text)
        os.utime(self._folder / name, (until, until))
        self._sweep()

    def has(self, name: str) -> bool:
        """Whether an entry is there, be it over or not."""
        return (self._folder / name).exists()

    def take(self, name: str, now: float | None = None) -> str | None:
        """Removes an entry, for one caller of all processes alone; None where there is none, or it is over."""
        taken = self._folder / f".{name}.{secrets.token_hex(8)}"
        try:
            os.rename(self._folder / name, taken)
            text, until = taken.read_text("utf-8"), taken.stat().st_mtime
        except OSError:
            return None
        delete_file(taken)
        return text if (time.time() if now is None else now) < until else None

    def _sweep(self) -> None:
        over = time.time() - KEPT_SECONDS
        for file in self._folder.iterdir():
            with suppress(OSError):  # Another process has removed it.
                if file.stat().st_mtime < over:
                    delete_file(file)
