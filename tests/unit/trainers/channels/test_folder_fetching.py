"""Folders of an object store, fetched to a disk: whole and in parts, and what goes wrong on the way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.folders import opened
from tests.support.refusals import missing_names, refuses, refuses_each
from tests.support.rows import until
from tests.support.trainers.channels.folder_fetching import (
    WANTED,
    Store,
    hasty,  # noqa: F401  # Of every test.
    stored,  # noqa: F401  # Fixtures.
)
from trainers import DataError
from trainers.channels.folder import fetching
from trainers.channels.folder.fetching import Wanted, fetch
from trainers.channels.folder.listing import _check_names
from trainers.errors import StorageError


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
