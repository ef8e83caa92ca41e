"""Compressed CSV files: what plain ones hold, with the same errors, and a clear one where they are cut short."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hpo.jobs.files.inputs import open_inputs, record_inputs
from tests.support.refusals import refuses
from tests.support.tables import frame, rows_of, same
from trainers import Channel, ConfigurationError, DataError

DATA = frame(200)
Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


PACKS: dict[str, Pack] = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}


def csv(header: bool = True) -> bytes:
    return DATA.to_csv(index=False, header=header).encode()


@pytest.mark.parametrize("ending", PACKS)
@pytest.mark.parametrize("header", [True, False])
def test_rows_are_those_of_the_plain_file(tmp_path: Path, ending: str, header: bool) -> None:
    packed = tmp_path / f"rows.csv{ending}"
    packed.write_bytes(PACKS[ending](csv(header)))
    channel = Channel.of(packed)
    same(channel.read_whole(), Channel.of(DATA).read_whole())
    assert (channel.read_whole().feature_names is not None) == header
    assert np.concatenate([rows_of(channel.read(rank, 3)) for rank in range(3)]).tolist() == [
        *range(0, 200, 3),
        *range(1, 200, 3),
        *range(2, 200, 3),
    ]
    channel.look(3)
    again = open_inputs(record_inputs({"train": channel}, str(tmp_path)))["train"]
    same(again.read_whole(), channel.read_whole())


@pytest.mark.parametrize("ending", PACKS)
def test_a_folder_and_a_pattern_find_them(tmp_path: Path, ending: str) -> None:
    for number in range(4):
        part = DATA[number * 50 : (number + 1) * 50].to_csv(index=False).encode()
        (tmp_path / f"part-{number}.csv{ending}").write_bytes(PACKS[ending](part))
    for path in (str(tmp_path), f"{tmp_path}/part-*.csv{ending}"):
        same(Channel.of(path, target="y").read_whole(), Channel.of(DATA).read_whole())
    (tmp_path / "part-4.csv").write_bytes(csv())
    with refuses(ConfigurationError, field=(f"part-0.csv{ending}", "part-4.csv"), remedy="compressed"):
        Channel.of(tmp_path)


@pytest.mark.parametrize("ending", PACKS)
def test_one_that_is_not_compressed_at_all_is_an_error(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"rows.csv{ending}").write_bytes(csv())
    with refuses(DataError, field=f"rows.csv{ending}", value="damaged"):
        Channel.of(tmp_path / f"rows.csv{ending}")


@pytest.mark.parametrize("ending", PACKS)
def test_errors_name_the_line(tmp_path: Path, ending: str) -> None:
    lines = csv().splitlines()
    for number in range(10):
        wrong = {97: b"1,2"} if number == 9 else {}
        text = b"\n".join(wrong.get(at, line) for at, line in enumerate(lines, 1))
        (tmp_path / f"{number}.csv{ending}").write_bytes(PACKS[ending](text))
    with refuses(DataError, field=(f"9.csv{ending}", "line 97"), value=2, remedy=("3", "delimiter")):
        Channel.of(tmp_path).look()
    lines[96] = b"1,x,3"
    (tmp_path / f"9.csv{ending}").write_bytes(PACKS[ending](b"\n".join(lines)))
    with refuses(DataError, field=(f"9.csv{ending}", "x1", "line 97"), value="x", remedy="categorical"):
        Channel.of(tmp_path).look()


def test_a_quick_look_is_at_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(csv()))
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", packed.stat().st_size * 3)
    assert Channel.of(packed).source.look() is None, "it has more bytes when it is open"


def test_the_digest_changes_with_the_bytes(tmp_path: Path) -> None:
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(csv(), mtime=0))
    before = Channel.of(packed).fingerprint()
    assert Channel.of(packed).fingerprint() == before
    packed.write_bytes(gzip.compress(csv(header=False), mtime=0))
    assert Channel.of(packed, target=0, header=True).fingerprint() != before
