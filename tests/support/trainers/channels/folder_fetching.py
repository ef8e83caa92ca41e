"""A folder in a bucket, and a file system whose reads fail on demand."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import pytest

from trainers import storage
from trainers.channels.folder import fetching
from trainers.channels.folder.fetching import Wanted

FILES = {"a b.txt": "a", "ü/ñ 日本.txt": "bb", "ü/x/%20.txt": "", "x.txt": "cccc", "x/y.csv.gz": "d"}


@pytest.fixture
def stored(s3: str) -> str:
    """A folder of a bucket with `FILES`."""
    from pyarrow.fs import FileSystem

    folder = storage.join(s3, "images")
    storage.check_writable(s3)
    filesystem, inside = FileSystem.from_uri(folder)
    for name, text in FILES.items():
        with filesystem.open_output_stream(f"{inside}/{name}", compression=None) as stream:
            stream.write(text.encode())
    filesystem.create_dir(f"{inside}/marker")  # An object of no bytes, as consoles make them for folders.
    return folder


class Store:
    """A file system whose files are of ten bytes, and are opened as a test wants it."""

    def __init__(self, **breaks: Any) -> None:
        self.asked: Counter[str] = Counter()
        self._breaks = breaks

    def open_input_stream(self, path: str, compression: None) -> Any:
        self.asked[path] += 1
        if broken := self._breaks.get(path):
            broken(self.asked[path])
        return io.BytesIO(b"x" * 10)


WANTED = [Wanted(name, 10, name) for name in "abcdefghij"]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.0)
