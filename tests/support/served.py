"""The server as a process of its own, on a record."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

SERVER = """
import sys
from hpo.serve import ServeSettings, run
bounds = {name: float(value) for name, value in (each.split("=") for each in sys.argv[2:])}
run(ServeSettings(port=0, store=sys.argv[1], **bounds), lambda line: print(line, flush=True))
"""


@contextmanager
def served(url: str, home: Path, **bounds: float) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server until the end of the block, which kills it; `bounds` are settings of the server."""
    home.mkdir(exist_ok=True)
    bounds = {"header_seconds": 1.0, **bounds}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, url, *(f"{name}={value}" for name, value in bounds.items())],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "WARMBAND_HOME": str(home)},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        kept = home / "token"
        if not kept.exists():  # The link and the token are printed by the first server of a home alone.
            process.stdout.readline()
            kept.write_text(process.stdout.readline().split()[-1])
        token = kept.read_text()
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            yield process, client
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()
