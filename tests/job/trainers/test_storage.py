"""Checkpoint files: whole or not there, on local disks and behind URIs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trainers import storage


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "000030"
    contents = [bytes([letter]) * 2_000_000 for letter in b"ab"]
    storage.write(str(path), contents[0])
    written = threading.Event()

    def read() -> int:
        reads = 0
        while not written.is_set():
            assert storage.read(str(path)) in contents
            reads += 1
        return reads

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            for number in range(100):
                storage.write(str(path), contents[number % 2])
        finally:
            written.set()
        assert reader.result() > 0
