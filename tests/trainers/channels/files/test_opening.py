"""What is known, and what is refused, as a channel is opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csr_array

from tests.support.tables import frame, write
from trainers.channels import Channel
from trainers.errors import ConfigurationError, DataError


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
        (csr_array(np.eye(3)), {}, DataError, "a csr_array is sparse, and only X of a pair .X, y. may be; give"),
        ((np.eye(3), csr_array(np.eye(3))), {}, DataError, "a csr_array is sparse, .*; give a dense array: with .toa"),
        ((coo_matrix(np.eye(3)), np.zeros(4)), {}, DataError, "X has 3 rows and y has 4"),
        ((coo_matrix(np.eye(3) * 1j), np.zeros(3)), {}, DataError, "the coo_matrix holds complex128 values, no num"),
        ((csr_array(np.array([[0, -1e39]])), [1]), {}, DataError, "column '1' holds -inf; infinite values"),
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
        ({"a.parquet.gz": "PAR1"}, {}, ConfigurationError, "end in .csv, .parquet, .libsvm, .svm or .svmlight, text"),
        ({"a.csv": "1,2\n", "b.csv.gz": "1,2\n"}, {}, ConfigurationError, "a.csv and .*b.csv.gz: give files of one k"),
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
        ("empty", "empty is a directory without a file of rows, .csv, .parquet.*; give another"),
    ],
)
def test_what_is_not_there_is_told_apart(tmp_path: Path, asked: str, message: str) -> None:
    frame(3).to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").touch()
    with pytest.raises(DataError, match=message):
        Channel.of(tmp_path / asked)
