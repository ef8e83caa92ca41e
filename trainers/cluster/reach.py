"""Paths and addresses that every node with workers has to reach, and the check on one of them."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainers.deletion import delete_file
from trainers.errors import ConfigurationError

PATIENCE_SECONDS = 3.0
"""How long a node looks for what is not there: shared file systems show a new file late."""

REACH_PREFIX = ".warmband-reach-"
"""Of what is written to be looked for; the job's own mark begins with less of it."""

_REMEDY = "give a folder that all nodes mount at this path, or a URI (s3://, gs://)"


def is_reach_marker(name: str) -> bool:
    """Return whether a file of that name is one that is written to be looked for."""
    return re.fullmatch(rf"{re.escape(REACH_PREFIX)}[0-9a-f]{{32}}", name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Paths that every node with workers has to see alike.

    Args:
        marker: a file that the driver wrote into the storage folder; empty where that is no path.
        files: sizes in bytes of channels' files, by (channel, path).
    """

    marker: str = ""
    files: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for."""
        return not self.marker and not self.files

    def unseen(self) -> str:
        """The problem with it on this machine, without its name; empty if there is none."""
        if self.marker and not _comes(self.marker):
            return f"storage_path {os.path.dirname(self.marker)!r} is another folder there; {_REMEDY}"
        if self.marker and (reason := _refuses_files(os.path.dirname(self.marker))):
            return f"storage_path {os.path.dirname(self.marker)!r} cannot be written there ({reason}); {_REMEDY}"
        for (channel, path), size in self.files.items():
            about = f"channel {channel!r}: {path!r}"
            if not _comes(path):
                return f"{about} is not there; {_REMEDY}, or rows in memory"
            if (actual := os.stat(path).st_size) != size:
                return (
                    f"{about} has {actual} bytes there, and {size} on the driver's node; {_REMEDY}, or rows in memory"
                )
        return ""

    def check_here(self, address: str) -> None:
        """Refuses to work on a node, which may have joined later than the others were asked.

        Raises:
            ConfigurationError: it does not see what the driver does.
        """
        if wrong := self.unseen():
            raise ConfigurationError(f"on node {address}: {wrong}")


def _comes(path: str) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _refuses_files(folder: str) -> str:
    """Why no file can be written into a folder; empty if one can."""
    probe = os.path.join(folder, f"{REACH_PREFIX}{uuid.uuid4().hex}")
    try:
        Path(probe).touch()
        delete_file(probe)
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""
