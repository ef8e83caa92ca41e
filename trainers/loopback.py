"""Ray on this machine, kept to 127.0.0.1 unless the user asks for more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's own switch, which it reads once, as it is imported: 0 makes clusters of one machine, on 127.0.0.1. On Windows
and macOS 0 is Ray's default. Drivers and workers that join another cluster have that cluster's addresses either way."""

ADDRESS = "127.0.0.1"


@contextmanager
def on_loopback() -> Iterator[None]:
    """Lets Ray be imported in the block so that a cluster it starts listens on 127.0.0.1 alone.

    Nothing changes where `RAY_ADDRESS` names a cluster, where the user has set `LOOPBACK_VARIABLE`, or Ray is imported
    already. The variable is gone behind the block, so that `ray start --address` works in a process started from here.
    """
    if "ray" in sys.modules or os.environ.get("RAY_ADDRESS") or LOOPBACK_VARIABLE in os.environ:
        yield
        return
    os.environ[LOOPBACK_VARIABLE] = "0"
    try:
        yield
    finally:
        os.environ.pop(LOOPBACK_VARIABLE, None)
