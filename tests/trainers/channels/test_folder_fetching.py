"""Folders of an object store, fetched to a disk: whole and in parts, and what goes wrong on the way."""

from __future__ import annotations

import io
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import contents, laid_out, opened
from tests.support.refusals import missing_names, refuses, refuses_each
from tests.support.rows import until
from trainers import DataError, storage
from trainers.channels import PlacedFolder
from trainers.channels.folder import fetching
from trainers.channels.folder.fetching import Wanted, fetch
from trainers.channels.folder.listing import _check_names
from trainers.errors import StorageError

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


def test_a_stored_folder_is_fetched_whole_and_in_parts(stored: str, tmp_path: Path) -> None:
    channel = opened(stored)
    assert channel.describe()["count"] == len(FILES)
    placed = channel.place(2).source
    assert isinstance(placed, PlacedFolder)
    placed.lay_out(tmp_path / "whole", 0, 2)
    assert contents(tmp_path / "whole") == FILES
    parts = laid_out(stored, tmp_path / "parts", 2)
    assert parts[0] | parts[1] == FILES
    assert sorted(map(len, parts)) == [2, 3]
    assert opened(stored).fingerprint() == channel.fingerprint()
    assert channel.files_to_see() == []


def test_what_changes_in_the_store_is_named_with_its_bytes(stored: str, tmp_path: Path) -> None:
    channel = opened(stored)
    placed = channel.place(1).source
    assert isinstance(placed, PlacedFolder)
    place, mark, options = stored.partition("?")
    storage.write(f"{place}/x.txt{mark}{options}", b"12345")
    assert opened(stored).fingerprint() != channel.fingerprint()
    with refuses(DataError, field=("x.txt", place), value="5 bytes", remedy="4 bytes"):
        placed.lay_out(tmp_path / "one", 0, 1)
    storage.delete(f"{place}/x.txt{mark}{options}")
    with refuses(DataError, field=("x.txt", place), value="4 bytes"):
        placed.lay_out(tmp_path / "two", 0, 1)


def test_no_folder_in_the_store_says_so(stored: str) -> None:
    place, _, options = stored.partition("?")
    with refuses(DataError, field="warmband/jobs/imges", remedy="warmband/jobs/images"):
        opened(f"{place.replace('images', 'imges')}?{options}")
    with refuses(DataError, field="images/x.txt", value="object", remedy="key"):
        opened(f"{place}/x.txt?{options}")
    with refuses(DataError, field="never-made/jobs/images") as told:
        opened(stored.replace("warmband/", "never-made/"))
    assert missing_names(str(told.value), "path", "URI") != ["path", "URI"], "one of them is the remedy"


def test_keys_that_no_disk_takes_are_refused() -> None:
    folder = "s3://bucket/images"
    refuses_each(
        [
            (lambda: _check_names(folder, ["a", "../../etc/passwd"]), (folder, "../../etc/passwd", "path", "rename")),
            (lambda: _check_names(folder, ["a", "b//c"]), (folder, "b//c", "path", "rename")),
            (lambda: _check_names(folder, ["a", "b", "b/c/d"]), (folder, "'b'", "b/c/d", "disk", "rename")),
        ],
        DataError,
    )


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


def test_a_file_that_fails_is_asked_for_again(tmp_path: Path) -> None:
    def once(attempt: int) -> None:
        if attempt == 1:
            raise OSError("SlowDown")

    store = Store(c=once)
    fetch("s3://bucket/images", store, WANTED, tmp_path)
    assert store.asked["c"] == 2
    assert sorted(contents(tmp_path)) == list("abcdefghij")


def test_one_that_always_fails_ends_it_with_name_size_and_remedy(tmp_path: Path) -> None:
    def always(attempt: int) -> None:
        raise OSError("When reading: ACCESS_DENIED")

    store = Store(c=always)
    with refuses(
        StorageError,
        field=("'c'", "10 bytes", "s3://bucket/images", str(tmp_path)),
        value="When reading: ACCESS_DENIED",
        remedy=("access", "network", "disk"),
    ):
        fetch("s3://bucket/images", store, WANTED, tmp_path)
    assert store.asked["c"] == fetching.ATTEMPTS


@pytest.mark.parametrize(
    ("limit", "names"),
    [
        ("STALL_SECONDS", ("'c'", "10 bytes", "0 s", "90 bytes", "endpoint")),
        ("FETCH_SECONDS", ("0 s", "90 bytes", "100 bytes", "ShardedByS3Key")),
    ],
)
def test_a_store_that_never_answers_is_waited_for_no_longer_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, names: tuple[str, ...]
) -> None:
    answer = threading.Event()
    store = Store(c=lambda attempt: answer.wait(60))
    work = fetching._Work("s3://bucket/images", store, WANTED, tmp_path)
    threads = [threading.Thread(target=work.run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: work._done == 9)
    monkeypatch.setattr(fetching, limit, 0.0)
    with refuses(StorageError, field=("s3://bucket/images", *names)):
        work.wait()
    answer.set()
    for thread in threads:
        thread.join()


def test_a_disk_without_room_is_not_filled(tmp_path: Path) -> None:
    with refuses(StorageError, field="s3://bucket/images", value="1,000,000.0 GB", remedy=("TMPDIR", "disk")):
        fetch("s3://bucket/images", Store(), [Wanted("a", 10**15, "a")], tmp_path / "data" / "train")
    assert list(tmp_path.iterdir()) == []
