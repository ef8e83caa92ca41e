"""Channels: every source gives the same rows, shards partition them, and errors say what to do."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import coo_matrix, csr_array

from trainers.channels import Channel, LabelRule, Table, files, fingerprint
from trainers.channels.dealing import deal
from trainers.channels.files import File, Files
from trainers.channels.opening import open_files
from trainers.errors import ConfigurationError, DataError


def frame(rows: int, columns: int = 3) -> pd.DataFrame:
    """A frame whose first column is the target and whose second is the row's number."""
    values = np.random.default_rng(7).normal(size=(rows, columns)).astype(np.float32)
    values[:, 1] = np.arange(rows)
    return pd.DataFrame(values, columns=["y", *(f"x{i}" for i in range(1, columns))])


def rows_of(table: Table) -> np.ndarray:
    """Which rows a table of `frame` holds."""
    return np.asarray(table.features)[:, 0].astype(int)


def same(one: Table, other: Table) -> None:
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.labels, other.labels)
    for table in (one, other):
        assert table.features.dtype == table.labels.dtype == np.float32
        assert table.features.flags.c_contiguous
        assert table.labels.flags.c_contiguous


def write(data: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same data in every form that needs no Ray."""
    data.to_csv(folder / "headed.csv", index=False)
    data.to_csv(folder / "bare.csv", index=False, header=False)
    data.to_csv(folder / "semicolons.csv", index=False, sep=";")
    # A small row group, so that shards cross several.
    data.to_parquet(folder / "data.parquet", row_group_size=7)
    return {
        "pandas": Channel.of(data, target="y"),
        "numpy": Channel.of(data.to_numpy(), target=0),
        "pair of arrays": Channel.of((data.to_numpy()[:, 1:], data.to_numpy()[:, 0])),
        "pair of frames": Channel.of((data.drop(columns="y"), data["y"])),
        "csv with header": Channel.of(folder / "headed.csv", target="y"),
        "csv without header": Channel.of(str(folder / "bare.csv")),
        "csv with semicolons": Channel.of(folder / "semicolons.csv", delimiter=";"),
        "parquet": Channel.of(folder / "data.parquet", target="y"),
        "uri": Channel.of(f"file://{folder}/data.parquet", target=-data.shape[1]),
    }


# ---- the laws


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 40), world_size=st.integers(1, 9), columns=st.integers(2, 5))
def test_shards_partition_the_rows_alike_for_every_source(
    rows: int, world_size: int, columns: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = frame(rows, columns)
    channels = write(data, tmp_path_factory.mktemp("data"))
    whole = Table(features=data.to_numpy()[:, 1:].copy(), labels=data["y"].to_numpy().copy(), feature_names=None)
    for channel in channels.values():
        same(channel.read_whole(), whole)
        if rows < world_size:
            with pytest.raises(DataError, match="fewer"):
                channel.read(world_size - 1, world_size)
            continue
        for rank in range(world_size):
            shard = channel.read(rank, world_size)
            assert rows_of(shard).tolist() == list(range(rank, rows, world_size))
            np.testing.assert_array_equal(shard.labels, whole.labels[rank::world_size])


@given(weights=st.lists(st.integers(1, 1000), min_size=1, max_size=30), world_size=st.integers(1, 8))
def test_what_is_read_whole_is_handed_out_once_and_in_balance(weights: list[int], world_size: int) -> None:
    dealt = deal(weights, world_size)
    handed_out = [index for share in dealt.whole for index in share] + list(dealt.by_row)
    assert sorted(handed_out) == list(range(len(weights)))
    if not any(dealt.whole):
        return
    loads = [sum(weights[index] for index in share) for share in dealt.whole]
    assert min(loads) > 0
    rest, mean = sum(weights[index] for index in dealt.by_row) / world_size, sum(weights) / world_size
    assert max(loads) + rest <= 1.1 * mean
    assert not dealt.by_row or min(loads) + rest >= 0.9 * mean


@pytest.mark.parametrize(
    ("files", "world_size", "whole", "by_row"), [(8, 3, 2, 2), (10, 4, 2, 2), (20, 8, 2, 4), (6, 3, 2, 0)]
)
def test_no_worker_reads_every_file(files: int, world_size: int, whole: int, by_row: int) -> None:
    dealt = deal([100] * files, world_size)
    assert [len(share) for share in dealt.whole] == [whole] * world_size
    assert len(dealt.by_row) == by_row


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Of each block that is read from now on: its file's name, and how many rows it has."""
    noted: list[tuple[str, int]] = []
    blocks = Files._blocks

    def read(self: Files, file: File, *groups: Any) -> Iterator[Any]:
        for block in blocks(self, file, *groups):
            noted.append((Path(file.path).name, block.num_rows))
            yield block

    monkeypatch.setattr(Files, "_blocks", read)
    return noted


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_of_eight_files_three_workers_read_half_each(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = frame(8 * 30)
    for number in range(8):
        part, path = data.iloc[30 * number : 30 * (number + 1)], tmp_path / f"part-{number}.{kind}"
        part.to_csv(path, index=False, float_format="%012.6f") if kind == "csv" else part.to_parquet(path)
    channel, held, noted = Channel.of(tmp_path, target="y"), [], decoded(monkeypatch)
    for rank in range(3):
        noted.clear()
        held.append(rows_of(channel.read(rank, 3)))
        assert len({name for name, _ in noted}) == 4
    assert [len(rows) for rows in held] == [80, 80, 80]
    assert sorted(np.concatenate(held)) == list(range(240))


def test_a_large_parquet_file_is_decoded_by_all_workers_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame(700).to_parquet(tmp_path / "data.parquet", row_group_size=100)
    channel, noted = Channel.of(tmp_path / "data.parquet", target="y"), decoded(monkeypatch)
    small = [rows_of(channel.read(rank, 3)) for rank in range(3)]
    assert [rows.tolist() for rows in small] == [list(range(rank, 700, 3)) for rank in range(3)]
    assert sum(rows for _, rows in noted) == 3 * 700
    monkeypatch.setattr("trainers.channels.files.QUICK_BYTES", 0)
    held = []
    for rank in range(3):
        noted.clear()
        held.append(rows_of(channel.read(rank, 3)))
        assert sum(rows for _, rows in noted) == 300, "two row groups of its own, and the one that all share"
    assert sorted(len(rows) for rows in held) == [233, 233, 234]
    assert sorted(np.concatenate(held)) == list(range(700))
    same(channel.read_whole(), Channel.of(frame(700)).read_whole())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_even_files_are_read_whole_and_uneven_ones_by_row(tmp_path: Path, kind: str) -> None:
    data = frame(120)
    cuts = {"even": [0, 30, 60, 90, 120], "uneven": [0, 100, 105, 110, 120]}
    for name, edges in cuts.items():
        (tmp_path / name).mkdir()
        for number, (start, stop) in enumerate(pairwise(edges)):
            part, path = data.iloc[start:stop], tmp_path / name / f"part-{number}.{kind}"
            part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
    (tmp_path / "even" / "_SUCCESS").touch()

    even = Channel.of(tmp_path / "even", target="y")
    held = [rows_of(even.read(rank, 2)) for rank in range(2)]
    assert sorted(np.concatenate(held)) == list(range(120))
    # 60 rows that touch two of the four files: two files whole.
    assert all(len(rows) == 60 and len(set(rows // 30)) == 2 for rows in held)

    uneven = Channel.of(str(tmp_path / "uneven" / "part-?.*"), target="y")
    assert rows_of(uneven.read(1, 3)).tolist() == list(range(1, 120, 3))
    same(uneven.read_whole(), Channel.of(data).read_whole())
    # More workers than files.
    assert rows_of(even.read(4, 5)).tolist() == list(range(4, 120, 5))


def test_patterns_and_directories_reach_below(tmp_path: Path) -> None:
    for day in ("day=1", "day=2"):
        (tmp_path / day).mkdir()
        frame(4).to_parquet(tmp_path / day / "part.parquet")
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "half.parquet").write_bytes(b"PAR1")
    for source in (
        tmp_path,
        f"{tmp_path}/day=*/part.parquet",
        f"file://{tmp_path}",
        [tmp_path / "day=1", tmp_path / "day=2"],
    ):
        described = Channel.of(source).describe()
        assert (described["rows"], described["columns"]) == (8, ["y", "x1", "x2", "day"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_directories_that_name_a_value_are_columns(tmp_path: Path, kind: str) -> None:
    expected = []
    for number, (year, month) in enumerate([("2024", "1"), ("2024", "2"), ("2024", "__HIVE_DEFAULT_PARTITION__")]):
        folder, data = tmp_path / f"year={year}" / f"month={month}", frame(5) + number
        folder.mkdir(parents=True)
        path = folder / f"part.{kind}"
        data.to_csv(path, index=False) if kind == "csv" else data.to_parquet(path)
        expected.append(data.assign(year=float(year), month=float(month) if month.isdigit() else np.nan))
    channel = Channel.of(tmp_path, target="y")
    same(channel.read_whole(), Channel.of(pd.concat(expected), target="y").read_whole())
    assert Channel.of(tmp_path, target="month").describe()["target"] == "month"
    held = np.concatenate([rows_of(channel.read(rank, 2)) for rank in range(2)])
    assert sorted(held) == sorted([*range(5), *range(1, 6), *range(2, 7)])
    again = open_files(**json.loads(json.dumps(channel.source.reopened_with())))  # type: ignore[attr-defined]
    same(again.read_whole(), channel.read_whole())
    before = channel.fingerprint()
    assert again.fingerprint() == before
    # A directory, or a list, may begin further down.
    below = Channel.of([tmp_path / "year=2024" / "month=1", tmp_path / "year=2024" / "month=2"])
    assert below.describe()["columns"] == ["y", "x1", "x2", "month"]
    assert Channel.of(tmp_path / "year=2024" / "month=1" / f"part.{kind}").describe()["columns"] == ["y", "x1", "x2"]
    (tmp_path / "year=2024" / "month=2").rename(tmp_path / "year=2024" / "month=7")
    assert Channel.of(tmp_path, target="y").fingerprint() != before


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        (("country=DE", "country=FR"), "'country=DE' makes a column that holds 'DE', which is no number; encode it as"),
        (("day=1", "month=2"), "directories for month, and .*day=1/part.parquet for day: all files of a channel need"),
        (("day=1", "other"), "directories for no columns, and .* for day"),
    ],
)
def test_directories_that_make_no_columns_of_numbers_are_refused(
    tmp_path: Path, folders: tuple[str, str], message: str
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir()
        frame(4).to_parquet(tmp_path / folder / "part.parquet")
    with pytest.raises(DataError, match=message):
        Channel.of(tmp_path)


def test_a_column_of_the_files_goes_before_one_of_directories(tmp_path: Path) -> None:
    (tmp_path / "x1=9").mkdir()
    frame(4).to_parquet(tmp_path / "x1=9" / "part.parquet")
    same(Channel.of(tmp_path).read_whole(), Channel.of(frame(4)).read_whole())


def test_arrow_missing_numbers_and_truth_values(tmp_path: Path) -> None:
    data = pd.DataFrame({"y": [0, 1, 0], "a": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True]})
    data.to_parquet(tmp_path / "data.parquet")
    data.assign(b=data["b"].astype(int)).to_csv(tmp_path / "data.csv", index=False)
    expected = np.array([[1, 1], [np.nan, 0], [3, 1]], np.float32)
    for source in (data, tmp_path / "data.parquet", tmp_path / "data.csv"):
        np.testing.assert_array_equal(Channel.of(source).read_whole().features, expected)


def test_row_labels_that_pandas_stores_are_no_feature(tmp_path: Path) -> None:
    data = frame(10).sample(frac=1, random_state=0)
    data.to_parquet(tmp_path / "data.parquet")
    channel = Channel.of(tmp_path / "data.parquet", target=-1)
    assert channel.read_whole().feature_names == ("y", "x1")
    same(channel.read_whole(), Channel.of(data, target="x2").read_whole())


def test_categories_pass_through_as_a_frame() -> None:
    data = frame(9).assign(colour=pd.Categorical(list("abcabcabc")))
    features = Channel.of(data).read(1, 4).features
    assert features["colour"].tolist() == ["b", "c"]
    assert features["colour"].cat.categories.tolist() == ["a", "b", "c"]
    assert features["x1"].dtype == np.float32


# ---- what is known at once


def test_of_names_the_target_and_the_header(tmp_path: Path) -> None:
    channels = write(frame(5), tmp_path)
    assert channels["csv with header"].describe() == {
        "kind": "csv",
        "rows": None,
        "columns": ["y", "x1", "x2"],
        "files": [str(tmp_path / "headed.csv")],
        "target": "y",
    }
    assert channels["csv without header"].describe()["target"] == 0
    assert channels["uri"].describe()["files"] == [f"file://{tmp_path}/data.parquet"]
    assert channels["parquet"].describe()["rows"] == 5
    for channel in channels.values():
        json.dumps(channel.describe())


def test_the_same_rows_have_the_same_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = frame(50)
    channels = write(data, tmp_path)
    digests = {name: channel.fingerprint() for name, channel in channels.items()}
    in_memory = {digests[name] for name in ("pandas", "numpy", "pair of arrays", "pair of frames")}
    assert len(in_memory) == 1
    assert len(set(digests.values())) == 1 + 4, "CSV with and without a header, with semicolons, and Parquet"
    (tmp_path / "copy").mkdir()
    assert digests == {name: channel.fingerprint() for name, channel in write(data, tmp_path / "copy").items()}
    for row, column in ((49, "x2"), (0, "y")):
        other = data.copy()
        other.loc[row, column] += 1
        changed = write(other, tmp_path)
        assert not {channel.fingerprint() for channel in changed.values()} & set(digests.values())
    # Large ones: a row in so many and every label, or what the file system says.
    monkeypatch.setattr(fingerprint, "MOST_BYTES", 120)
    monkeypatch.setattr(files, "QUICK_BYTES", 10)
    large = {name: channel.fingerprint() for name, channel in write(data, tmp_path / "copy").items()}
    assert not set(large.values()) & set(digests.values())
    other = data.copy()
    other.loc[49, "y"] += 1
    assert not {channel.fingerprint() for channel in write(other, tmp_path).values()} & set(large.values())


def test_categories_are_in_the_fingerprint() -> None:
    one = frame(8).assign(kind=pd.Categorical(["a", "b"] * 4))
    other = one.assign(kind=pd.Categorical(["a", "b"] * 3 + ["b", "a"]))
    digests = [Channel.of(data, target="y").fingerprint() for data in (one, one.copy(), other)]
    assert digests[0] == digests[1] != digests[2]


def test_the_fingerprint_of_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    channel = write(frame(5), tmp_path)["csv with header"]
    (tmp_path / "headed.csv").unlink()
    with pytest.raises(DataError, match="still there"):
        channel.fingerprint()


def test_header_is_told_by_a_cell_that_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("1,,3\n4,5,6\n")
    assert len(Channel.of(path).read_whole().labels) == 2
    assert len(Channel.of(path, header=True).read_whole().labels) == 1
    path.write_text("\ufeffy,1,2\r\n4,5,6\r\n", encoding="utf-8")
    assert Channel.of(path, target="y").read_whole().feature_names == ("1", "2")


def test_a_channel_stays_and_takes_a_name() -> None:
    channel = Channel.of(frame(3), target="x2")
    assert Channel.of(channel) is channel
    named = Channel.of(channel, name="train")
    assert (named.name, named.source) == ("train", channel.source)
    with pytest.raises(ConfigurationError, match="where it is made"):
        Channel.of(channel, target="y")


# ---- errors


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        (frame(3), {"target": "x22"}, ConfigurationError, r"channel 'train': target='x22'.*'x2'"),
        (frame(3), {"target": 3}, ConfigurationError, "there are 3 columns; give 0 to 2"),
        (frame(3), {"delimiter": ";"}, ConfigurationError, "for CSV files"),
        (frame(3).to_numpy(), {"target": "y"}, ConfigurationError, "give a position"),
        ((frame(3), np.zeros(3)), {"target": "y"}, ConfigurationError, "y is the target"),
        ((frame(3), np.zeros(4)), {}, DataError, "X has 3 rows and y has 4"),
        (frame(0), {}, DataError, "no rows"),
        (frame(3)[["y"]], {}, DataError, "no feature"),
        (np.zeros(3), {}, DataError, r"shape \(3,\)"),
        (np.array([["a", "b"]]), {}, DataError, "no numbers; encode"),
        (frame(2).assign(job=["nurse", "cook"]), {}, DataError, "column 'job' holds str.*encode"),
        (frame(2).assign(y=["yes", "no"]), {}, DataError, "the target holds str.*encode"),
        (frame(2).assign(y=pd.Categorical(["yes", "no"])), {}, DataError, "the target holds category"),
        (frame(3).assign(y=[np.nan, 1, np.nan]), {}, DataError, r"channel 'train': 2 labels are missing"),
        (frame(3).set_axis(["y", "a", "a"], axis=1), {}, DataError, "more than one column is named 'a'"),
        (7, {}, ConfigurationError, "cannot read from int"),
        (csr_array(np.eye(3)), {}, DataError, "a csr_array is sparse; give a dense array: with .toarray"),
        ((coo_matrix(np.eye(3)), np.zeros(3)), {}, DataError, "a coo_matrix is sparse; give a dense array"),
        ((np.eye(3), csr_array(np.eye(3))), {}, DataError, "a csr_array is sparse; give a dense array"),
        ("/nowhere/at/all.csv", {}, DataError, "does not exist"),
        ("nosuch://bucket/data.csv", {}, DataError, "cannot be reached.*check the URI"),
        ("", {}, ConfigurationError, "a path is empty; give a file"),
        ("a\0b.csv", {}, DataError, "cannot be reached"),
        ("\udc80.csv", {}, DataError, "cannot be reached"),
        ("~\0", {}, DataError, r"channel 'train': '~\\x00' cannot be reached: embedded null byte; check the path"),
        ("~\ud800/a.csv", {}, DataError, r"channel 'train': '~\\ud800/a.csv' cannot be reached: .*; check the path"),
        (("a.csv", "~\0"), {}, DataError, r"channel 'train': '~\\x00' cannot be reached"),
        ([], {}, ConfigurationError, "there are no paths"),
        (frame(3), {"target": True}, ConfigurationError, "target=True: give a column's name, or its position"),
        (frame(3), {"target": 1.0}, ConfigurationError, "target=1.0: give"),
        (frame(3), {"header": "yes"}, ConfigurationError, "header='yes': give True, False, or None"),
        (([[1], [1, 2]], [0, 1]), {}, DataError, "the list makes no array.*give rows of equal length"),
        (frame(2).assign(x1=[1, np.inf]), {}, DataError, "column 'x1' holds inf; infinite values, and those too large"),
        (frame(2).assign(x1=[1, -1e39]), {}, DataError, "column 'x1' holds -inf"),
        (np.array([[0, 1, 1e39]]), {}, DataError, "column '2' holds 1e[+]39"),
        (np.array([[np.inf, 1, 1]]), {}, DataError, "1 label is missing .NaN. or infinite"),
    ],
)
def test_of_refuses(source: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Channel.of(source, name="train", **options)


@pytest.mark.parametrize(
    ("files", "options", "error", "message"),
    [
        ({"a.csv": ""}, {}, DataError, "a.csv is empty"),
        ({"a.csv": "1;2\n"}, {}, DataError, "is the delimiter ',' right"),
        ({"a.csv": "y,a\n1,2\n", "b.csv": "y,b\n1,2\n"}, {}, DataError, r"b.csv has 2 columns \(y, b\)"),
        ({"a.csv": "1,2\n", "b.csv": "1,2,3\n"}, {}, DataError, "b.csv has 3 columns without names"),
        ({"a.csv": "1,2\n", "b.parquet": "PAR1"}, {}, ConfigurationError, "files of one kind"),
        ({"a.csv.gz": "1,2\n"}, {}, ConfigurationError, "end in .csv or .parquet"),
        ({"a.parquet": "PAR1 cut off"}, {}, DataError, "a.parquet is cut short or damaged.*again"),
        ({"a.csv": "y,a\n1,2\n"}, {"target": "yy"}, ConfigurationError, "did you mean 'y'"),
        ({"a.csv": "1,2\n"}, {"target": "y"}, ConfigurationError, "give a position"),
        ({"a.csv": "1,2\n"}, {"delimiter": "::"}, ConfigurationError, "delimiter='::': give one ASCII character"),
        ({"a.csv": "1,2\n"}, {"delimiter": "\n"}, ConfigurationError, "give one ASCII character"),
        ({"a.csv": "1,2\n"}, {"delimiter": 5}, ConfigurationError, "give one ASCII character"),
    ],
)
def test_of_refuses_files(
    tmp_path: Path, files: dict[str, str], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(error, match=message):
        Channel.of([tmp_path / name for name in files], **options)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("trian.csv", "trian.csv does not exist; did you mean .*/train.csv[?]"),
        ("elsewhere.csv", "elsewhere.csv does not exist; check the path"),
        ("part-*.csv", r"part-\*.csv matches no file; check the pattern"),
        ("empty", "empty is a directory without a .csv or .parquet file; give another"),
    ],
)
def test_what_is_not_there_is_told_apart(tmp_path: Path, asked: str, message: str) -> None:
    frame(3).to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").touch()
    with pytest.raises(DataError, match=message):
        Channel.of(tmp_path / asked)


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
        ("y,a,b\n,2,3\n4,5,6\n", r"channel 'train': 1 label is missing"),
        ("y,a\n1,\xe9\n", "data.csv is not UTF-8 in line 2: save it as UTF-8"),
        ("y,\xe9\n1,2\n", "data.csv is not UTF-8 in its first line .*: save it as UTF-8"),
        ("\0y,a\n1,2\n", "data.csv is no text: its first line holds NUL bytes; save it as CSV in UTF-8"),
        ("\ny,a\n1,2\n", "data.csv has an empty first line: remove it"),
        ("y,a\n1,inf\n", "column 'a' holds inf; infinite values, and those too large .*: cut such values off"),
        ("y,a\n1,1e39\n", "column 'a' holds inf; infinite values, and those too large"),
        ("-inf,2\n", "1 label is missing .NaN. or infinite: drop"),
        ("y,a,b\n1,2,3\n", "fewer rows than workers"),
    ],
)
def test_reading_refuses_a_damaged_csv(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "data.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        Channel.of(tmp_path / "data.csv", name="train").read(1 if "fewer" in message else 0, 2)


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


@pytest.mark.parametrize(
    ("train", "validation", "message"),
    [
        (["y", "a", "b"], ["y", "b", "a"], "in another order than in channel 'train': 'b' for 'a': give both the same"),
        (["y", "a", "b"], ["y", "a"], "columns lack 'b' of channel 'train': give both the same columns, in one order"),
        (["y", "a"], ["y", "a", "b"], "columns have 'b', which channel 'train' has not: give both"),
        (["y", "a"], ["y", "c"], "columns lack 'a' and have 'c', which channel 'train' has not: give both"),
        (["y", "a"], None, "columns have no names, and names in channel 'train': give both the same, or neither any"),
    ],
)
def test_columns_are_compared_with_those_that_are_trained_on(
    train: list[str], validation: list[str] | None, message: str
) -> None:
    def channel(name: str, columns: list[str] | None) -> Channel:
        values = np.zeros((3, len(columns or train)))
        return Channel.of(pd.DataFrame(values, columns=columns) if columns else values, name=name)

    with pytest.raises(DataError, match=f"channel 'validation': .*{message}"):
        channel("validation", validation).check_like(channel("train", train))
    channel("validation", train).check_like(channel("train", train))


def test_columns_without_names_are_counted() -> None:
    with pytest.raises(DataError, match="there are 2 columns beside the target, and 3 in channel 'train'"):
        Channel.of(np.zeros((2, 3)), name="validation").check_like(Channel.of(np.zeros((2, 4)), name="train"))


RULES = (
    LabelRule(who="the objective", takes="labels from 0 to 1", remedy="encode them", least=0, most=1),
    LabelRule(who="the metric", takes="rows of both classes", remedy="add some", classes=2),
)


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2, 3], "channel 'train': 2 labels, 2 the first of them, are not what the objective takes, labels from 0"),
        ([0, 1, -0.5], "the label -0.5 is not what the objective takes, labels from 0 to 1: encode them"),
        ([1, 1, 1], "every label is 1, and the metric takes rows of both classes: add some"),
    ],
)
def test_labels_are_checked_where_they_are_read(tmp_path: Path, kind: str, labels: list[float], message: str) -> None:
    data = pd.DataFrame({"y": labels, "x": [1.0, 2.0, 3.0]})
    data.to_csv(tmp_path / "data.csv", index=False)
    data.to_parquet(tmp_path / "data.parquet")
    source = data if kind == "pandas" else tmp_path / f"data.{kind}"
    channel = Channel.of(source, name="train").expecting(RULES)
    for read in (channel.look, channel.read_whole):
        with pytest.raises(DataError, match=message):
            read()
    if kind != "pandas":
        with pytest.raises(DataError, match=message):
            pickle.loads(pickle.dumps(channel.place(2))).read_whole()


def test_a_shard_may_lack_a_class_by_chance() -> None:
    data = pd.DataFrame({"y": [0, 1, 0, 1], "x": range(4)})
    channel = Channel.of(data).expecting(RULES)
    assert channel.read(0, 2).labels.tolist() == [0, 0]
    channel.look()


def test_classes_are_counted_where_there_are_more_than_two() -> None:
    rule = LabelRule(who="the metric", takes="rows of all 3 classes", remedy="add some", classes=3, whole=True)
    with pytest.raises(
        DataError, match="labels are of 2 classes, and the metric takes rows of all 3 classes: add some"
    ):
        Channel.of(np.array([[0, 1], [1, 1], [0, 2]])).expecting((rule,)).look()
    with pytest.raises(DataError, match=r"the label 0.5 is not what"):
        Channel.of(np.array([[0.5, 1], [1, 1]])).expecting((rule,)).look()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_of_large_files_the_beginning_is_looked_at(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "QUICK_BYTES", 0)
    path = tmp_path / f"data.{kind}"
    data = frame(5)
    data.to_csv(path, index=False) if kind == "csv" else data.to_parquet(path)
    Channel.of(path).expecting(RULES).look()
    if kind == "csv":
        path.write_text("y,a\n1,nurse\n")
        with pytest.raises(DataError, match="column 'a' holds 'nurse' in line 2"):
            Channel.of(path).look()


def test_what_is_infinite_in_a_category_is_not_asked() -> None:
    data = frame(2).assign(colour=pd.Categorical([1.0, np.inf]))
    assert Channel.of(data).read_whole().features["colour"].tolist() == [1.0, np.inf]


def test_masked_values_are_missing() -> None:
    array = np.ma.masked_greater(np.array([[0, 1, 5], [1, 9, 2]]), 4)
    np.testing.assert_array_equal(Channel.of(array).read_whole().features, [[1, np.nan], [np.nan, 2]])


# ---- placing


def test_placed_files_are_small_and_read_without_ray(tmp_path: Path) -> None:
    channel = write(frame(50), tmp_path)["parquet"]
    message = pickle.dumps(channel.place(3))
    assert len(message) < 4096
    placed = pickle.loads(message)
    same(placed.read(2, 3), channel.read(2, 3))
    same(placed.read_whole(), channel.read_whole())
    with pytest.raises(ConfigurationError, match="placed for 3 workers and read by 4"):
        placed.read(0, 4)


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


def late_first(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Passes a batch on, the first one last."""
    if batch["x1"].min() == 0:
        time.sleep(1.0)
    return batch


@pytest.mark.usefixtures("ray_cluster")
class TestInRay:
    """What needs Ray's object store, or Ray Data."""

    def read_on_workers(self, placed: Any, world_size: int) -> list[tuple[Table, Table]]:
        import ray

        @ray.remote(num_cpus=0.1)
        def work(message: bytes, rank: int) -> tuple[Table, Table]:
            placed = pickle.loads(message)
            return placed.read(rank, world_size), placed.read_whole()

        message = ray.cloudpickle.dumps(placed)
        assert len(message) < 20_000
        return ray.get([work.remote(message, rank) for rank in range(world_size)])

    @pytest.mark.ray
    @pytest.mark.parametrize(
        "kind", ["pandas", "numpy", "pair of frames", "csv with header", "ray.data", "ray.data lazy"]
    )
    def test_workers_read_what_the_driver_placed(self, tmp_path: Path, kind: str) -> None:
        import ray

        data = frame(101)
        channels = write(data, tmp_path)
        if kind == "ray.data":
            rows = ray.data.from_pandas(data).repartition(7)
            channels[kind] = Channel.of(rows.materialize(), target="y")
        elif kind == "ray.data lazy":
            lazy = ray.data.from_pandas([data[:30], data[30:60], data[60:]]).map_batches(late_first, batch_size=None)
            channels[kind] = Channel.of(lazy, target="y")
        channel = channels[kind]
        # Each placement executes a lazy dataset again, which takes seconds.
        for world_size in (3,) if kind == "ray.data lazy" else (1, 3):
            read = self.read_on_workers(channel.place(world_size), world_size)
            for rank, (shard, whole) in enumerate(read):
                same(shard, channels["numpy"].read(rank, world_size))
                same(whole, channels["numpy"].read_whole())

    @pytest.mark.ray
    def test_categories_survive_the_store(self) -> None:
        data = frame(9).assign(colour=pd.Categorical(list("abcabcabc")))
        whole = Channel.of(data).place(4).read_whole()
        assert whole.features["colour"].tolist() == list("abcabcabc")
        assert whole.features.index.tolist() == list(range(9))

    @pytest.mark.ray
    def test_a_dataset_is_checked_before_workers_start(self) -> None:
        import ray

        for data, workers, message in [
            (frame(4).assign(job="nurse"), 2, "column 'job' holds"),
            (frame(4).assign(y=[1.0, np.nan, 0.0, np.nan]), 2, r"channel 'train': 2 labels are missing"),
            (frame(2), 3, "2 rows for 3 workers"),
        ]:
            with pytest.raises(DataError, match=message):
                Channel.of(ray.data.from_pandas(data), name="train").place(workers)
        with pytest.raises(ConfigurationError, match="did you mean 'y'"):
            Channel.of(ray.data.from_pandas(frame(4)), target="yy").place(2)

    @pytest.mark.ray
    def test_a_dataset_describes_itself_without_running(self) -> None:
        import ray

        data = ray.data.from_pandas(frame(6))
        described = Channel.of(data.materialize(), target="x2").describe()
        assert (described["kind"], described["rows"], described["target"]) == ("ray.data", 6, "x2")
        assert Channel.of(data.map_batches(lambda batch: batch)).describe()["rows"] is None
        json.dumps(described)
