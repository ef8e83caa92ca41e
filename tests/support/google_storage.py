"""A server that speaks as Google's storage does, behind a proxy, both in a process of their own.

Of their own, since pyarrow asks for the size of a file while no other thread of Python's may run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.flaky_s3 import proxied


class GoogleStorage:
    """The proxy, as tests see it.

    Args:
        port: where it listens.
        folder: has what it is to do, and what it did.
    """

    def __init__(self, port: int, folder: Path) -> None:
        self._port, self._folder = port, folder
        self.answer()

    def uri(self, path: str) -> str:
        """Of an object or folder, without credentials."""
        return f"gs://anonymous@{path}?scheme=http&endpoint_override=127.0.0.1%3A{self._port}"

    def answer(self, status: int = 0, times: int = 1 << 30) -> None:
        """Has the next requests answered with a status, in the server's place; 0: with what it says itself."""
        (self._folder / "answer").write_text(json.dumps([status, times if status else 0]))
        (self._folder / "got").write_text("")

    @property
    def left(self) -> int:
        """How many more requests are answered so."""
        return int(json.loads((self._folder / "answer").read_text())[1])

    @property
    def got(self) -> list[tuple[str, int]]:
        """Paths of objects that were fetched since `answer`, and bytes of each."""
        return [tuple(json.loads(line)) for line in (self._folder / "got").read_text().splitlines()]


@contextmanager
def google_storage(bucket: str, folder: Path) -> Iterator[GoogleStorage]:
    """A server that runs as long as the context lasts.

    Args:
        bucket: is there from the beginning.
        folder: for what it is to do, and what it did.
    """
    command = [sys.executable, "-m", __name__, bucket, str(folder)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        yield GoogleStorage(int(server.stdout.readline()), folder)
    finally:
        server.kill()
        server.wait(10)


class _Log(list[tuple[str, int]]):
    """Fetched objects, as lines of a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def append(self, one: tuple[str, int]) -> None:
        with self._file.open("a") as lines:
            lines.write(json.dumps(one) + "\n")


def _serve(bucket: str, folder: Path) -> None:
    from gcp_storage_emulator.server import create_server

    def fault(method: str, path: str) -> tuple[int, str] | None:
        status, left = json.loads((folder / "answer").read_text())
        if not left:
            return None
        (folder / "answer").write_text(json.dumps([status, left - 1]))
        return status, "backendError"

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket=bucket)
    server.start()
    # The server takes one connection at a time. The proxy takes many, and reads each answer to its end at once.
    with proxied("127.0.0.1", server._api._httpd.socket.getsockname()[1]) as proxy:
        proxy.fault, proxy.got = fault, _Log(folder / "got")
        sys.stdout.write(f"{proxy.port}\n")
        sys.stdout.flush()
        sys.stdin.read()  # Until the process of the tests ends.


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]))
