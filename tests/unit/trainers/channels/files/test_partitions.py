"""Directories and patterns: which files they reach, and which columns their names make."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.refusals import refuses
from tests.support.tables import frame, rows_of, same
from trainers.channels import Channel
from trainers.channels.files.opening import open_files
from trainers.errors import DataError


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
    ("folders", "names"),
    [
        (("country=DE", "country=FR"), ("country=DE", "'DE'", "categorical", "drop")),
        (("day=1", "month=2"), ("month=2/part.parquet", "month", "day=1/part.parquet", "day")),
        (("day=1", "other"), ("other/part.parquet", "day=1/part.parquet", "day")),
    ],
)
def test_directories_that_make_no_columns_of_numbers_are_refused(
    tmp_path: Path, folders: tuple[str, str], names: tuple[str, ...]
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir()
        frame(4).to_parquet(tmp_path / folder / "part.parquet")
    with refuses(DataError, field=names):
        Channel.of(tmp_path)


def test_a_column_of_the_files_goes_before_one_of_directories(tmp_path: Path) -> None:
    (tmp_path / "x1=9").mkdir()
    frame(4).to_parquet(tmp_path / "x1=9" / "part.parquet")
    same(Channel.of(tmp_path).read_whole(), Channel.of(frame(4)).read_whole())
