"""Files as they are read: damage is named with its place, and a worker holds its own rows alone."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.tables import frame
from trainers.channels import Channel
from trainers.channels.files import files
from trainers.errors import DataError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "y,a,b\n1,2,3\n4,5\n",
            "data.csv has 2 cells in line 3 and 3 cells in its first: it is cut short or damaged; write",
        ),
        ("y,a,b\n1,2\n", "2 cells in line 2 and 3 cells in its first"),
        ("y,a\n1,2\n\n\n1,2,3\n", "3 cells in line 5 and 2 cells in its first.*that the delimiter is ','"),
        ("y,a\r1,2\r\r3\r", "1 cell in line 4"),
        ("y,a,b\n1,nurse,3\n", "column 'a' holds 'nurse' in line 2, which is no number; encode"),
        ("1,2,3\n4,5,nurse\n", "column 2 holds 'nurse'"),
        ("y,a,b\n", "data.csv holds no rows"),
        ("y,a,b\n,2,3\n4,5,6\n", r"channel 'train': .*data.csv: row 1: the label is nan: drop"),
        ("y,a\n1,\xe9\n", "data.csv is not UTF-8 in line 2: save it as UTF-8"),
        ("y,\xe9\n1,2\n", "data.csv is not UTF-8 in its first line .*: save it as UTF-8"),
        ("\0y,a\n1,2\n", "data.csv is no text: its first line holds NUL bytes; save it as CSV in UTF-8"),
        (
            '"y","a\nb"\n1,2\n',
            "data.csv has a quote in its first line that does not end there; give each column a name",
        ),
        ("y,a,a\n1,2,3\n", "data.csv: more than one column is named 'a': give each its own name"),
        ("\ny,a\n1,2\n", "data.csv has an empty first line, or is empty: remove the line"),
        ("y,a\nyes,2\n", r"column 'y' holds 'yes'.*no number; encode it as numbers first \(pandas.get_dummies, say\)$"),
        ("y,a\n1,inf\n", "column 'a' holds inf; infinite values, and those too large .*: cut such values off"),
        ("y,a\n1,1e39\n", "column 'a' holds inf; infinite values, and those too large"),
        ("-inf,2\n", r"data.csv: row 1: the label is -inf: drop"),
        ("y,a,b\n1,2,3\n", "fewer rows than workers"),
    ],
)
def test_reading_refuses_a_damaged_csv(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "data.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        Channel.of(tmp_path / "data.csv", name="train").read(1 if "fewer" in message else 0, 2)


def test_what_is_wrong_with_one_of_several_parquet_files_names_it(tmp_path: Path) -> None:
    frame(3).to_parquet(tmp_path / "1.parquet")
    frame(3).assign(x2=pd.Timestamp("2020-01-01")).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(
        DataError, match=r"2\.parquet: column 'x2' holds timestamp\[\w+\] values, no numbers; encode it"
    ):
        Channel.of(tmp_path)
    parquet.write_table(pa.table([[1.0, 0.0]] * 3, names=["y", "x1", "x1"]), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet: more than one column is named 'x1'"):
        Channel.of(tmp_path)


@pytest.mark.parametrize("other", [frame(2), frame(3).rename(columns={"x2": "x3"})])
def test_a_parquet_file_that_is_written_anew_is_no_longer_the_channel_s(tmp_path: Path, other: pd.DataFrame) -> None:
    """Pyarrow leaves out a column that is not there, and rows that are gone were nobody's loss."""
    frame(3).to_parquet(tmp_path / "data.parquet")
    channel = Channel.of(tmp_path / "data.parquet", name="train")
    other.to_parquet(tmp_path / "data.parquet")
    with pytest.raises(
        DataError, match=r"'train': .*data\.parquet has changed since its channel was opened: put the old"
    ):
        channel.read(0, 2)


def test_a_page_of_parquet_that_is_not_what_was_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = pa.Table.from_pandas(frame(5000))
    parquet.write_table(table, path, use_dictionary=False, compression=None, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[20_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data\.parquet is cut short or damaged .*write or copy it again"):
        Channel.of(path).read_whole()


def test_parquet_says_at_once_what_its_footer_knows(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    frame(3).assign(job="nurse").to_parquet(path)
    with pytest.raises(DataError, match=r"column 'job' holds (large_)?string"):
        Channel.of(path)
    frame(3).to_parquet(path)
    with pytest.raises(DataError, match="3 rows for 4 workers"):
        Channel.of(path).place(4)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="cut short"):
        Channel.of(path)


def test_parquet_damaged_inside_is_told_apart_from_its_foot(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    frame(5000).to_parquet(path)
    whole = bytearray(path.read_bytes())
    whole[4:4000] = bytes(3996)
    path.write_bytes(bytes(whole))
    with pytest.raises(DataError, match=r"data.parquet is cut short or damaged"):
        Channel.of(path).read(0, 1)


@pytest.mark.process
def test_a_worker_holds_its_own_rows_of_a_large_csv(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    block = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (50_000, 40))).to_csv(index=False, header=False)
    path.write_text(block * 10)
    program = textwrap.dedent(
        """
        import sys, tracemalloc
        import pandas, pyarrow  # Arrow imports pandas when it first makes arrays.
        from trainers.channels import Channel
        channel = Channel.of(sys.argv[1])
        tracemalloc.start()
        assert channel.read(3, 10).features.shape == (50_000, 39)
        print(pyarrow.total_allocated_bytes(), pyarrow.default_memory_pool().max_memory())
        print(tracemalloc.get_traced_memory()[1])
        """
    )
    # Arrow reads some blocks ahead, in its own pool. NumPy tells tracemalloc of its arrays.
    answer = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    left, blocks, arrays = map(int, answer.stdout.split())
    # The whole is 156 MB as parsed and 78 MB as float32; the shard is 7.8 MB, twice while its pieces are put together.
    assert left == 0
    assert blocks < 80e6
    assert arrays < 20e6


def test_a_long_row_fits_into_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its block is made for it: Arrow refuses a row that reaches over more than two."""
    monkeypatch.setattr(files, "_BLOCK_BYTES", 4096)
    width = 1_000
    (tmp_path / "wide.csv").write_text(("1," + ",".join(["-0.12345678901234567"] * (width - 1)) + "\n") * 2)
    assert (tmp_path / "wide.csv").stat().st_size / 2 > 4 * files._BLOCK_BYTES
    assert Channel.of(tmp_path / "wide.csv").read(1, 2).features.shape == (1, width - 1)
