"""The folder of Warmband's files on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """`WARMBAND_HOME`, or `~/.warmband`, as an absolute path; it need not be there yet."""
    return Path(os.environ.get("WARMBAND_HOME") or "~/.warmband").expanduser().absolute()
