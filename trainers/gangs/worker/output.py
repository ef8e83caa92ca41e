"""The place of a worker's output: named by the worker, and found by later readers."""

from __future__ import annotations

import os
from pathlib import Path


def own(address: str) -> str:
    """Where this worker's output is, as "address:path"; empty where that cannot be told.

    Ray gives each worker process two files, and Train's `print` and logging end in the second as well as what XGBoost
    itself writes.
    """
    try:
        return f"{address}:{os.readlink('/proc/self/fd/2')}"
    except OSError:
        return ""


def found(logs: str) -> tuple[str, Path]:
    """The address and the file of what `own` named, where the file is now.

    Once Ray's log monitor has 200 files open, it moves those of processes that have ended into `old` beside them
    (ray 2.60).
    """
    address, _, named = logs.partition(":")
    file = Path(named)
    moved = file.parent / "old" / file.name
    return address, moved if not file.is_file() and moved.is_file() else file
