"""A real MLflow server, as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port


@contextmanager
def mlflow_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Its URL and its process, with a database in a folder."""
    port = free_port()
    program = [Path(sys.executable).with_name("mlflow"), "server", "--host", "127.0.0.1", "--port", str(port)]
    log = (folder / "log").open("w")
    running = subprocess.Popen(
        [*program, "--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/server.db"],
        cwd=folder,
        # Processes for jobs of its own, which each import all of MLflow.
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=5):
                    break
            except OSError:
                assert running.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, "it did not answer in two minutes"
                time.sleep(0.2)
        yield url, running
    finally:
        end(running)
        log.close()


def end(running: subprocess.Popen[bytes]) -> None:
    """Kills a server with all its processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait(30)
