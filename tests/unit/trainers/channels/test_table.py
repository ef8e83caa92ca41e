"""What a channel makes of values: missing ones, categories, row labels, and columns compared with others'."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.refusals import refuses, refuses_each
from tests.support.tables import frame, same
from trainers.channels import Channel, Table, interleave
from trainers.errors import DataError


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


def test_what_is_infinite_in_a_category_is_not_asked() -> None:
    data = frame(2).assign(colour=pd.Categorical([1.0, np.inf]))
    assert Channel.of(data).read_whole().features["colour"].tolist() == [1.0, np.inf]


def test_masked_values_are_missing() -> None:
    array = np.ma.masked_greater(np.array([[0, 1, 5], [1, 9, 2]]), 4)
    np.testing.assert_array_equal(Channel.of(array).read_whole().features, [[1, np.nan], [np.nan, 2]])


def test_columns_are_compared_with_those_that_are_trained_on() -> None:
    def channel(name: str, columns: str, named: bool = True) -> Channel:
        values = np.zeros((3, len(columns)))
        return Channel.of(pd.DataFrame(values, columns=list(columns)) if named else values, name=name)

    def compared(train: str, validation: str, named: bool = True) -> Callable[[], None]:
        return lambda: channel("validation", validation, named).check_like(channel("train", train))

    refuses_each(
        [
            (compared("yab", "yba"), ("'validation'", "columns", "order", "'b'", "'a'", "'train'")),
            (compared("yab", "ya"), ("'validation'", "columns", "'b'", "'train'")),
            (compared("ya", "yab"), ("'validation'", "columns", "'b'", "'train'")),
            (compared("ya", "yc"), ("'validation'", "columns", "'a'", "'c'", "'train'")),
            (compared("ya", "ya", named=False), ("'validation'", "columns", "names", "'train'")),
        ],
        DataError,
    )
    for columns in ("yab", "ya"):
        compared(columns, columns)()


def test_columns_without_names_are_counted() -> None:
    with refuses(DataError, field=("'validation'", "columns"), value=2, remedy=("3", "'train'")):
        Channel.of(np.zeros((2, 3)), name="validation").check_like(Channel.of(np.zeros((2, 4)), name="train"))


@pytest.mark.parametrize("lengths", [(2, 3), (3, 1)])
def test_shards_that_were_not_dealt_out_row_by_row_lie_behind_each_other(lengths: tuple[int, int]) -> None:
    numbers = np.split(np.arange(sum(lengths), dtype=np.float32), [lengths[0]])
    shards = [Table(features=part.reshape(-1, 1), labels=part, feature_names=("x",)) for part in numbers]
    assert interleave(shards).labels.tolist() == list(range(sum(lengths)))
