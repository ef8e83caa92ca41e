"""Folders of an object store, fetched to a disk: whole and in parts, and what goes wrong on the way."""

from __future__ import annotations

from pathlib import Path

from tests.support.folders import contents, laid_out, opened
from tests.support.refusals import refuses
from tests.support.trainers.channels.folder_fetching import (
    FILES,
    WANTED,
    Store,
    hasty,  # noqa: F401  # Of every test.
    stored,  # noqa: F401  # Fixtures.
)
from trainers import DataError, storage
from trainers.channels import PlacedFolder
from trainers.channels.folder import fetching
from trainers.channels.folder.fetching import fetch
from trainers.errors import StorageError


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
