"""A machine without data, and homes of files to download."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any data; returns its cache directory."""
    monkeypatch.delenv("WARMBAND_DATA", raising=False)
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "data"


@pytest.fixture
def home_of() -> Iterator[Callable[..., str]]:
    """Starts a home of files by name, of each of which only the first so many bytes arrive; returns its URL."""
    with ExitStack() as stack:

        def start(files: Mapping[str, bytes], sent: int | None = None) -> str:
            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    body = files.get(self.path.rpartition("/")[2])
                    self.send_response(404 if body is None else 200)
                    self.send_header("Content-Length", str(len(body or b"")))
                    self.end_headers()
                    self.wfile.write((body or b"")[:sent])

                def log_message(self, format: str, *args: object) -> None:
                    """Quiet."""

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            stack.callback(server.shutdown)
            Thread(target=partial(server.serve_forever, poll_interval=0.01), daemon=True).start()
            return f"http://127.0.0.1:{server.server_port}"

        yield start
