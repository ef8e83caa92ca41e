"""A search for secrets in bytes, and a record of all processes' command lines."""

from __future__ import annotations

import os
import re
import threading
import zlib
from pathlib import Path


def found(secret: str, raw: bytes) -> bool:
    """Whether some bytes hold a secret, plain or inside of compressed streams, as of PNG and Parquet files."""
    if secret.encode() in raw:
        return True
    for start in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", raw):
        try:
            if secret.encode() in zlib.decompressobj().decompress(raw[start.start() :], 1 << 24):
                return True
        except zlib.error:
            continue
    return False


class ProcessList:
    """The command lines of all processes on this machine, as long as it watches."""

    def __init__(self) -> None:
        self.lines: set[bytes] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ProcessList:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            for entry in filter(str.isdigit, os.listdir("/proc")):
                try:
                    self.lines.add(Path("/proc", entry, "cmdline").read_bytes())
                except OSError:
                    continue
