"""Rows on Google's storage, by its own client, through a proxy that counts and answers with errors."""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.google_storage import GoogleStorage
from tests.support.refusals import missing_names, refuses
from tests.support.tables import frame, rows_of, same
from trainers import Channel, DataError, Folder, storage

DATA = frame(400)
WHOLE = Channel.of(DATA).read_whole()


@pytest.fixture(autouse=True)
def sound(google: GoogleStorage) -> Iterator[None]:
    yield
    google.answer()


def put(google: GoogleStorage, name: str, data: bytes) -> str:
    uri = google.uri(f"warmband/rows/{name}")
    storage.write(uri, data)
    return uri


def content_of(name: str) -> bytes:
    csv = DATA.to_csv(index=False).encode()
    if name.endswith(".parquet"):
        buffer = io.BytesIO()
        DATA.to_parquet(buffer)
        return buffer.getvalue()
    return gzip.compress(csv) if name.endswith(".gz") else csv


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_rows_are_those_of_local_files(google: GoogleStorage, name: str) -> None:
    channel = Channel.of(put(google, name, content_of(name)))
    same(channel.read_whole(), WHOLE)
    copy = pickle.loads(pickle.dumps(channel.place(2)))
    assert sorted([*copy.read(0, 2).labels, *copy.read(1, 2).labels]) == sorted(WHOLE.labels)


def test_folders_and_patterns_are_found_and_dealt_by_file(google: GoogleStorage) -> None:
    for number in range(3):
        put(google, f"parts/{number}.csv", content_of("a.csv"))
    for path in ("warmband/rows/parts", "warmband/rows/parts/*.csv"):
        channel = Channel.of(google.uri(path), distribution="ShardedByS3Key")
        assert channel.describe()["files"] == [f"gs://warmband/rows/parts/{number}.csv" for number in range(3)]
    google.answer()
    assert rows_of(channel.read(0, 3)).tolist() == list(range(400))
    assert len({path for path, _ in google.got}) == 1
    assert Channel.of(Folder(google.uri("warmband/rows/parts"))).describe()["count"] == 3


def test_a_rank_fetches_the_row_groups_that_it_needs(google: GoogleStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", 1 << 20)
    values, buffer = np.random.default_rng(0).normal(size=(100_000, 10)), io.BytesIO()
    table = pa.table({f"x{at}": values[:, at] for at in range(10)})
    parquet.write_table(table, buffer, row_group_size=25_000, use_dictionary=False, compression=None)
    content = buffer.getvalue()
    channel = Channel.of(put(google, "groups.parquet", content), target=0)
    google.answer()
    assert channel.source.look() is None
    for rank in range(4):
        google.answer()
        assert len(channel.read(rank, 4).labels) == 25_000
        # Of each file that it opens pyarrow begins to read all, and breaks off.
        ranges = [size for _, size in google.got if size != len(content)]
        assert 0.24 * len(content) < sum(ranges) < 0.3 * len(content), "a quarter, and the foot"


@pytest.mark.parametrize("name", ["away.csv", "away.parquet"])
def test_what_a_job_loses_is_one_error(google: GoogleStorage, name: str) -> None:
    uri = put(google, name, content_of(name))
    placed = pickle.loads(pickle.dumps(Channel.of(uri, name="train").place(0)))
    google.answer(503, times=1)
    assert len(placed.read(0, 2).labels) == 200, "it was away for a moment alone"
    google.answer(401)
    with refuses(DataError, field=f"gs://warmband/rows/{name}", value="expired", remedy="credentials"):
        placed.read(0, 2)
    google.answer()
    storage.delete(uri)
    with refuses(DataError, field=("'train'", f"gs://warmband/rows/{name}")) as gone:
        placed.read(0, 2)
    with refuses(DataError, field=name) as never:
        Channel.of(uri)
    for told in (gone, never):
        assert missing_names(str(told.value), "credentials", "damaged") == ["credentials", "damaged"]
