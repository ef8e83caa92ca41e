"""What a channel makes of values: missing ones, categories, row labels, and columns compared with others'."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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


@pytest.mark.parametrize("lengths", [(2, 3), (3, 1)])
def test_shards_that_were_not_dealt_out_row_by_row_lie_behind_each_other(lengths: tuple[int, int]) -> None:
    numbers = np.split(np.arange(sum(lengths), dtype=np.float32), [lengths[0]])
    shards = [Table(features=part.reshape(-1, 1), labels=part, feature_names=("x",)) for part in numbers]
    assert interleave(shards).labels.tolist() == list(range(sum(lengths)))
