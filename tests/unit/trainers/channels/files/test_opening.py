"""What is known, and what is refused, as a channel is opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csr_array

from tests.support.refusals import refuses, refuses_each
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
    assert len(Channel.of(path, target=0, header=True).read_whole().labels) == 1
    path.write_text("\ufeffy,1,2\r\n4,5,6\r\n", encoding="utf-8")
    assert Channel.of(path, target="y").read_whole().feature_names == ("1", "2")


def test_a_channel_stays_and_takes_a_name() -> None:
    channel = Channel.of(frame(3), target="x2")
    assert Channel.of(channel) is channel
    named = Channel.of(channel, name="train")
    assert (named.name, named.source) == ("train", channel.source)
    with refuses(ConfigurationError, field="target", remedy="Channel"):
        Channel.of(channel, target="y")


# ---- errors


def opened(source: Any, **options: Any) -> Callable[[], Channel]:
    return lambda: Channel.of(source, name="train", **options)


def test_of_refuses() -> None:
    refuses_each(
        [
            (opened(frame(3), target="x22"), ("'train'", "target", "x22", "x2")),
            (opened(frame(3), target=3), ("target", 3, 0, 2)),
            (opened(frame(3), delimiter=";"), ("delimiter", "CSV")),
            (opened(frame(3).to_numpy(), target="y"), ("target", "'y'", "position", 0)),
            (opened((frame(3), np.zeros(3)), target="y"), ("target", "'y'", "(X, y)")),
            (opened(7), ("int", "DataFrame", ".csv")),
            (opened(""), ("path", "empty", "file")),
            (opened([]), ("paths",)),
            (opened(frame(3), target=True), ("target", True, "name", 0)),
            (opened(frame(3), target=1.0), ("target", 1.0, "name", 0)),
            (opened(frame(3), header="yes"), ("header", "'yes'", True, False, None)),
        ],
        ConfigurationError,
    )
    refuses_each(
        [
            (opened((frame(3), np.zeros(4))), ("X", 3, "y", 4)),
            (opened(frame(0)), ("rows",)),
            (opened(frame(3)[["y"]]), ("feature",)),
            (opened(np.zeros(3)), ("array", "(3,)")),
            (opened(np.array([["a", "b"]])), ("array", "numbers", "pandas.get_dummies")),
            (opened(frame(2).assign(job=["nurse", "cook"])), ("job", "nurse", "row 1", "drop", "categorical")),
            (opened(frame(2).assign(y=["yes", 1])), ("target", "numbers", "text")),
            (opened(frame(2).assign(y=pd.Timestamp("2020-01-01"))), ("target", "timestamp", "numbers", "text")),
            (opened(frame(3).assign(y=[np.nan, 1, np.nan])), ("'train'", 2, "labels", "NaN")),
            (opened(frame(3).set_axis(["y", "a", "a"], axis=1)), ("column", "'a'")),
            (opened(csr_array(np.eye(3))), ("csr_array", "sparse", "(X, y)")),
            (opened((np.eye(3), csr_array(np.eye(3)))), ("csr_array", "sparse", ".toarray()")),
            (opened((coo_matrix(np.eye(3)), np.zeros(4))), ("X", 3, "y", 4)),
            (opened((coo_matrix(np.eye(3) * 1j), np.zeros(3))), ("coo_matrix", "complex128", "float32")),
            (opened((csr_array(np.array([[0, -1e39]])), [1])), ("'1'", "-inf", "float32")),
            (opened("/nowhere/at/all.csv"), ("/nowhere/at/all.csv", "path")),
            (opened("nosuch://bucket/data.csv"), ("nosuch://bucket/data.csv", "URI")),
            (opened("a\0b.csv"), (r"a\x00b.csv", "path")),
            (opened("\udc80.csv"), (r"\udc80.csv", "path")),
            (opened("~\0"), ("'train'", r"'~\x00'", "path")),
            (opened("~\ud800/a.csv"), ("'train'", r"~\ud800/a.csv", "path")),
            (opened(("a.csv", "~\0")), ("'train'", r"'~\x00'", "path")),
            (opened(([[1], [1, 2]], [0, 1])), ("list", "array", "length")),
            (opened(frame(2).assign(x1=[1, np.inf])), ("x1", "inf", "float32", "NaN")),
            (opened(frame(2).assign(x1=[1, -1e39])), ("x1", "-inf")),
            (opened(np.array([[0, 1, 1e39]])), ("'2'", "1e+39")),
            (opened(np.array([[np.inf, 1, 1]])), (1, "label", "NaN")),
        ],
        DataError,
    )


def test_of_refuses_files(tmp_path: Path) -> None:
    places = count()

    def written(files: dict[str, str], **options: Any) -> Callable[[], Channel]:
        folder = tmp_path / f"case{next(places)}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        return lambda: Channel.of([folder / name for name in files], **options)

    endings = (".csv", ".parquet", ".libsvm", ".svm", ".svmlight", ".gz", ".bz2", ".zst")
    refuses_each(
        [
            (written({"a.csv": "1,2\n", "b.parquet": "PAR1"}), ("a.csv", "b.parquet")),
            (written({"a.parquet.gz": "PAR1"}), ("a.parquet.gz", *endings)),
            (written({"a.csv": "1,2\n", "b.csv.gz": "1,2\n"}), ("a.csv", "b.csv.gz", "compressed")),
            (written({"a.csv": "y,a\n1,2\n"}, target="yy"), ("target", "yy", "'y'")),
            (written({"a.csv": "1,2\n"}, target="y"), ("target", "'y'", "position", 0)),
            (written({"a.csv": "1,2\n"}, delimiter="::"), ("delimiter", "'::'", "ASCII")),
            (written({"a.csv": "1,2\n"}, delimiter="\n"), ("delimiter", r"'\n'", "ASCII")),
            (written({"a.csv": "1,2\n"}, delimiter=5), ("delimiter", 5, "ASCII")),
        ],
        ConfigurationError,
    )
    refuses_each(
        [
            (written({"a.csv": ""}), ("a.csv", "empty")),
            (written({"a.csv": "1;2\n"}), ("a.csv", "delimiter", "','")),
            (written({"a.csv": "y;a\n1;2\n"}), ("a.csv", "delimiter=';'")),
            (written({"a.csv": "y,a\n1,2\n"}, delimiter=";"), ("a.csv", "delimiter=','")),
            (written({"a.csv": "y\n1\n"}), ("a.csv", "','")),
            (written({"a.csv": "y,a\n1,2\n", "b.csv": "y,b\n1,2\n"}), ("b.csv", "y, b", "a.csv", "y, a")),
            (written({"a.csv": "1,2\n", "b.csv": "1,2,3\n"}), ("b.csv", 3, "a.csv", 2, "names")),
            (written({"a.parquet": "PAR1 cut off"}), ("a.parquet", "damaged")),
        ],
        DataError,
    )


def test_what_is_not_there_is_told_apart(tmp_path: Path) -> None:
    frame(3).to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").touch()
    refuses_each(
        [
            (opened(tmp_path / "trian.csv"), ("/trian.csv", "/train.csv")),
            (opened(tmp_path / "elsewhere.csv"), ("/elsewhere.csv", "path")),
            (opened(tmp_path / "part-*.csv"), ("/part-*.csv", "pattern")),
            (opened(tmp_path / "empty"), (f"{tmp_path}/empty", "directory", ".csv", ".parquet", "/empty/*.csv")),
        ],
        DataError,
    )


@pytest.mark.parametrize("role", [{"target": "y"}, {"target": "b", "drop": "y"}])
def test_spaces_behind_the_commas_of_a_header_are_told_of(tmp_path: Path, role: dict[str, str]) -> None:
    path = tmp_path / "spaced.csv"
    path.write_text("a,b, y\n1,2,0\n3,4,1\n")
    with refuses(ConfigurationError, field="'y'", value="' y'", remedy=("spaces", "header", "=' y'")):
        Channel.of(path, **role)
    assert Channel.of(path, target=" y").describe()["target"] == " y"
