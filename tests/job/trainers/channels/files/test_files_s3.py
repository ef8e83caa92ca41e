"""Rows in an object store, through a proxy that counts what is fetched and answers with errors."""

from __future__ import annotations

import gzip
import io
import pickle
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs, parquet
from ray import cloudpickle

from tests.support.flaky_s3 import Proxy, proxied
from tests.support.refusals import missing_names, refuses
from tests.support.tables import frame, rows_of, same
from trainers import Channel, DataError, storage

DATA = frame(400)
WHOLE = Channel.of(DATA).read_whole()


@pytest.fixture(scope="module")
def through(s3: str) -> Iterator[Proxy]:
    storage.check_writable(s3)
    address = urlsplit(parse_qs(urlsplit(s3).query)["endpoint_override"][0])
    with proxied(str(address.hostname), int(address.port or 80)) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def sound(through: Proxy) -> Iterator[None]:
    yield
    through.fault = lambda method, path: None
    through.got.clear()
    through.refused = 0


def put(s3: str, name: str, data: bytes) -> str:
    filesystem, folder = fs.FileSystem.from_uri(s3)
    with filesystem.open_output_stream(f"{folder}/{name}", compression=None) as stream:
        stream.write(data)
    return f"warmband/jobs/{name}"


def csv() -> bytes:
    return DATA.to_csv(index=False).encode()


def svm() -> bytes:
    rows = zip(DATA["y"].tolist(), DATA["x1"].tolist(), DATA["x2"].tolist(), strict=True)
    return "".join(f"{y!r} 1:{a!r} 2:{b!r}\n" for y, a, b in rows).encode()


def wide_parquet() -> bytes:
    """Ten columns in four row groups of a megabyte each, which do not compress."""
    values = np.random.default_rng(0).normal(size=(100_000, 10))
    table = pa.table({f"x{at}": values[:, at] for at in range(10)})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, row_group_size=25_000, use_dictionary=False, compression=None)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.svm", "a.parquet"])
def test_rows_are_those_of_local_files(s3: str, through: Proxy, name: str) -> None:
    buffer = io.BytesIO()
    DATA.to_parquet(buffer)
    content = {"a.csv": csv(), "a.csv.gz": gzip.compress(csv()), "a.svm": svm(), "a.parquet": buffer.getvalue()}[name]
    channel = Channel.of(through.uri(put(s3, name, content)))
    table = channel.read_whole()
    if name == "a.svm":
        np.testing.assert_array_equal(table.features.toarray(), WHOLE.features)
    else:
        same(table, WHOLE)
    copy = pickle.loads(pickle.dumps(channel.place(2)))
    assert sorted([*copy.read(0, 2).labels, *copy.read(1, 2).labels]) == sorted(WHOLE.labels)


def test_a_rank_fetches_the_row_groups_that_it_needs(s3: str, through: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", 1 << 20)
    content = wide_parquet()
    channel = Channel.of(through.uri(put(s3, "groups.parquet", content)), target=0)
    assert sum(size for _, size in through.got) < len(content) / 10, "its foot alone says what is in it"
    through.got.clear()
    assert channel.source.look() is None
    for rank in range(4):
        through.got.clear()
        assert len(channel.read(rank, 4).labels) == 25_000
        fetched = sum(size for _, size in through.got)
        assert fetched < 0.3 * len(content), "a quarter, and the foot"


@pytest.mark.parametrize("distribution", ["ShardedByS3Key"])
def test_a_rank_fetches_its_own_files(s3: str, through: Proxy, distribution: Any) -> None:
    for number in range(3):
        put(s3, f"parts/{number}.csv", csv())
    put(s3, "rows.manifest", b'[{"prefix": "s3://warmband/jobs/parts/"}, "0.csv", "2.csv"]')
    for path, files in (("warmband/jobs/parts", 3), ("warmband/jobs/rows.manifest", 2)):
        channel = Channel.of(through.uri(path), distribution=distribution)
        assert len(channel.describe()["files"]) == files
        through.got.clear()
        assert rows_of(channel.read(0, files)).tolist() == list(range(400))
        assert len({path for path, _ in through.got}) == 1


def test_a_store_that_asks_to_slow_down_is_asked_again_after_a_while(s3: str, through: Proxy) -> None:
    """On workers, too, which have a file system that was pickled."""
    path = through.uri(put(s3, "slow.csv", csv()))
    for placed in (Channel.of(path), pickle.loads(pickle.dumps(Channel.of(path).place(0)))):
        left = 2

        def slow(method: str, path: str) -> tuple[int, str] | None:
            nonlocal left
            left -= 1
            return (503, "SlowDown") if left >= 0 else None

        through.fault, through.refused = slow, 0
        same(placed.read_whole(), WHOLE)
        assert through.refused == 2


def test_a_worker_has_patience_with_a_store_as_its_driver_has(s3: str, through: Proxy) -> None:
    """A file system that was pickled, again and again, tries more than the three times that pyarrow gives it."""
    channel = Channel.of(through.uri(put(s3, "patient.csv", csv())))
    placed = pickle.loads(pickle.dumps(pickle.loads(cloudpickle.dumps(channel.place(2)))))
    left = 3

    def slow(method: str, path: str) -> tuple[int, str] | None:
        nonlocal left
        left -= 1
        return (503, "SlowDown") if left >= 0 else None

    through.fault = slow
    assert len(placed.read(0, 2).labels) + len(placed.read(1, 2).labels) == 400
    assert through.refused == 3


@pytest.mark.parametrize(
    ("status", "code", "names", "others"),
    [
        (403, "ExpiredToken", ("credentials", "expired", "node"), ("damaged",)),
        (404, "NoSuchKey", (), ("credentials", "damaged")),
    ],
)
@pytest.mark.parametrize("name", ["away.csv", "away.svm", "away.parquet"])
def test_what_a_job_loses_is_one_error_at_once(
    s3: str, through: Proxy, name: str, status: int, code: str, names: tuple[str, ...], others: tuple[str, ...]
) -> None:
    buffer = io.BytesIO()
    DATA.to_parquet(buffer)
    content = {"away.csv": csv(), "away.svm": svm(), "away.parquet": buffer.getvalue()}[name]
    channel = Channel.of(through.uri(put(s3, name, content)), name="train").place(0)
    through.fault = lambda method, path: (status, code)
    began = time.monotonic()
    with refuses(DataError, field=("'train'", f"s3://warmband/jobs/{name}"), remedy=names) as told:
        channel.read(0, 2)
    assert time.monotonic() - began < 10
    assert missing_names(str(told.value), *others) == list(others)


def test_a_key_that_expires_in_the_middle_of_a_file(s3: str, through: Proxy) -> None:
    channel = Channel.of(through.uri(put(s3, "middle.parquet", wide_parquet())), target=0)
    fetches = 0

    def expires(method: str, path: str) -> tuple[int, str] | None:
        nonlocal fetches
        fetches += method == "GET"
        return (403, "ExpiredToken") if fetches > 1 else None

    through.fault = expires
    with refuses(DataError, field="middle.parquet", value="expired", remedy="credentials"):
        channel.read_whole()
