"""Checkpoint files: whole or not there, on local disks and behind URIs."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trainers import DataError, storage


@pytest.fixture(params=["path", "URI"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder that is not there yet: as a path, and as a URI that goes through pyarrow."""
    folder = str(tmp_path / "jobs" / "a-job")
    return folder if request.param == "path" else f"file://{folder}"


def test_what_is_written_is_read(place: str) -> None:
    uri = storage.join(place, "trial-000", "000030")
    storage.write(uri, b"\x00model\xff")
    assert storage.read(uri) == b"\x00model\xff"
    storage.write(uri, b"")
    assert storage.read(uri) == b""


def test_a_path_and_its_uri_are_the_same_file(tmp_path: Path) -> None:
    storage.write(f"file://{tmp_path}/one", b"1")
    storage.write(f"{tmp_path}/two", b"2")
    assert storage.read(f"{tmp_path}/one") == b"1"
    assert storage.read(f"file://{tmp_path}/two") == b"2"


def test_a_uri_that_pyarrow_serves_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Object stores are written through pyarrow; a folder stands in for a bucket here."""
    from pyarrow import fs

    bucket = tmp_path / "bucket"
    (bucket / "jobs").mkdir(parents=True)
    served = fs.SubTreeFileSystem(str(bucket), fs.LocalFileSystem())
    monkeypatch.setattr(storage, "_resolve", lambda uri: (served, uri.removeprefix("s3://bucket/")))
    storage.write("s3://bucket/jobs/000030", b"model")
    assert (bucket / "jobs" / "000030").read_bytes() == b"model"
    assert storage.read("s3://bucket/jobs/000030") == b"model"


def test_a_missing_file_says_which_and_why_it_may_be(place: str) -> None:
    uri = storage.join(place, "000030")
    with pytest.raises(DataError, match=f"checkpoint '{uri}' is not there; was its folder removed"):
        storage.read(uri)


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


def test_the_old_file_stays_until_the_new_one_is_whole(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    uri = storage.join(place, "000030")
    storage.write(uri, b"old")
    seen: list[tuple[bytes, bytes]] = []
    replace = os.replace

    def look_first(draft: Path, path: Path) -> None:
        seen.append((storage.read(uri), Path(draft).read_bytes()))
        replace(draft, path)

    monkeypatch.setattr(os, "replace", look_first)
    storage.write(uri, b"new")
    assert seen == [(b"old", b"new")]
    assert storage.read(uri) == b"new"


def test_a_write_that_fails_leaves_what_was_there_and_no_draft(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "000030"
    storage.write(str(path), b"old")

    def full(draft: Path, data: bytes) -> int:
        with draft.open("wb") as stream:
            stream.write(data[:1])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            storage.write(str(path), b"new")
    assert storage.read(str(path)) == b"old"
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["000030"]


def test_a_write_onto_a_folder_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "000030" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        storage.write(str(tmp_path / "000030"), b"model")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("base", "parts", "joined"),
    [
        ("/jobs", ("a-job", "000030"), "/jobs/a-job/000030"),
        ("/jobs/", ("a-job",), "/jobs/a-job"),
        ("s3://bucket/jobs/", ("a-job", "000030"), "s3://bucket/jobs/a-job/000030"),
        ("relative", (), "relative"),
    ],
)
def test_join_is_for_paths_and_uris(base: str, parts: tuple[str, ...], joined: str) -> None:
    assert storage.join(base, *parts) == joined
