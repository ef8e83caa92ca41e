"""A warm process whose checks crash, hang and leak as they are told to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import Any

from hpo.serve.warm import serve

SEEN: list[str] = []


def prepare() -> None:
    """Fails, as where something is not installed."""
    raise ModuleNotFoundError("No module named 'sometimes'")


def perform(given: dict[str, Any]) -> dict[str, Any]:
    """Does what `kind` says."""
    SEEN.append(given["kind"])
    if given["kind"] == "crash":
        os.abort()
    if given["kind"] == "fail":
        raise RuntimeError("a fault")
    if given["kind"] == "hang":
        child = subprocess.Popen(["sleep", "600"])
        with open(given["file"], "w") as out:
            out.write(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    return {"seen": SEEN, "parent": os.getppid(), "by": os.environ["WARMBAND_ACTS_AS"]}


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), prepare, perform)
