"""Files as they are read: damage is named with its place, and a worker holds its own rows alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.refusals import refuses, refuses_each
from tests.support.tables import frame
from trainers.channels import Channel, Table
from trainers.channels.files import files
from trainers.errors import DataError


def test_reading_refuses_a_damaged_csv(tmp_path: Path) -> None:
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("y,a,b\n1,2,3\n4,5\n", ("data.csv", "line 3", 2, 3, "damaged", "delimiter")),
        ("y,a,b\n1,2\n", ("data.csv", "line 2", 2, 3)),
        ("y,a\n1,2\n\n\n1,2,3\n", ("data.csv", "line 5", 3, 2, "delimiter", "','")),
        ("y,a\r1,2\r\r3\r", ("data.csv", "line 4", 1, 2)),
        ("y,a,b\n1,nurse,3\n", ("data.csv", "'a'", "nurse", "line 2", "drop", "categorical")),
        ("1,2,3\n4,5,nurse\n", ("data.csv", "column 2", "nurse", "line 2")),
        ("y,a,b\n", ("data.csv", "rows")),
        ("y,a,b\n,2,3\n4,5,6\n", ("'train'", "data.csv", "row 1", "label", "nan")),
        ("y,a\n1,\xe9\n", ("data.csv", "line 2", "UTF-8")),
        ("y,\xe9\n1,2\n", ("data.csv", "line", "UTF-8")),
        ("\0y,a\n1,2\n", ("data.csv", "line", "NUL", "UTF-8")),
        ('"y","a\nb"\n1,2\n', ("data.csv", "quote", "line", "column")),
        ("y,a,a\n1,2,3\n", ("data.csv", "column", "'a'")),
        ("\ny,a\n1,2\n", ("data.csv", "empty", "line")),
        ("y,a\n1,inf\n", ("data.csv", "row 1", "'a'", "inf", "float32", "NaN")),
        ("y,a\n1,1e39\n", ("data.csv", "row 1", "'a'", "inf", "float32")),
        ("-inf,2\n", ("data.csv", "row 1", "label", "-inf")),
    ]

    def read(number: int, text: str, rank: int = 0) -> Table:
        path = tmp_path / f"case{number}" / "data.csv"
        path.parent.mkdir()
        path.write_bytes(text.encode("latin-1"))
        return Channel.of(path, name="train").read(rank, 2)

    few = (partial(read, len(cases), "y,a,b\n1,2,3\n", 1), ("rows", "workers"))
    refuses_each([*((partial(read, at, text), names) for at, (text, names) in enumerate(cases)), few], DataError)


def test_what_is_wrong_with_one_of_several_parquet_files_names_it(tmp_path: Path) -> None:
    frame(3).to_parquet(tmp_path / "1.parquet")
    frame(3).assign(x2=pd.Timedelta(days=1)).to_parquet(tmp_path / "2.parquet")
    with refuses(DataError, field=("2.parquet", "x2"), value="duration", remedy="pandas.get_dummies"):
        Channel.of(tmp_path)
    parquet.write_table(pa.table([[1.0, 0.0]] * 3, names=["y", "x1", "x1"]), tmp_path / "2.parquet")
    with refuses(DataError, field=("2.parquet", "column"), value="x1"):
        Channel.of(tmp_path)


@pytest.mark.parametrize("other", [frame(2), frame(3).rename(columns={"x2": "x3"})])
def test_a_parquet_file_that_is_written_anew_is_no_longer_the_channel_s(tmp_path: Path, other: pd.DataFrame) -> None:
    """Pyarrow leaves out a column that is not there, and rows that are gone were nobody's loss."""
    frame(3).to_parquet(tmp_path / "data.parquet")
    channel = Channel.of(tmp_path / "data.parquet", name="train")
    other.to_parquet(tmp_path / "data.parquet")
    with refuses(DataError, field=("'train'", "data.parquet"), value="changed"):
        channel.read(0, 2)


def test_a_page_of_parquet_that_is_not_what_was_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = pa.Table.from_pandas(frame(5000))
    parquet.write_table(table, path, use_dictionary=False, compression=None, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[20_000] ^= 1
    path.write_bytes(content)
    with refuses(DataError, field="data.parquet", value="damaged", remedy="CRC"):
        Channel.of(path).read_whole()


def test_parquet_says_at_once_what_its_footer_knows(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    frame(3).assign(job="nurse").to_parquet(path)
    with refuses(DataError, field="job", remedy=("categorical", "drop")):
        Channel.of(path)
    frame(3).to_parquet(path)
    with refuses(DataError, field="rows", value=3, remedy=("4", "workers")):
        Channel.of(path).place(4)
    path.write_bytes(path.read_bytes()[:-20])
    with refuses(DataError, field="data.parquet", value="damaged"):
        Channel.of(path)


def test_parquet_damaged_inside_is_told_apart_from_its_foot(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    frame(5000).to_parquet(path)
    whole = bytearray(path.read_bytes())
    whole[4:4000] = bytes(3996)
    path.write_bytes(bytes(whole))
    with refuses(DataError, field="data.parquet", value="damaged"):
        Channel.of(path).read(0, 1)


def test_a_long_row_fits_into_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its block is made for it: Arrow refuses a row that reaches over more than two."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 4096)
    width = 1_000
    (tmp_path / "wide.csv").write_text(("1," + ",".join(["-0.12345678901234567"] * (width - 1)) + "\n") * 2)
    assert (tmp_path / "wide.csv").stat().st_size / 2 > 4 * files._BLOCK_BYTES
    assert Channel.of(tmp_path / "wide.csv").read(1, 2).features.shape == (1, width - 1)
