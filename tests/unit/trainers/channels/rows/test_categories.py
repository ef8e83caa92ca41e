"""Categories: one code each in all files and on all workers, whatever the source; wrong ones are errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from tests.support.refusals import missing_names, refuses, refuses_each
from tests.support.tables import frame
from tests.support.trainers.channels.rows.categories import FRAME, NAMED, decoded
from trainers import Channel, ConfigurationError, DataError, TorchTrainer
from trainers.channels import interleave, open_channels
from trainers.channels.files import open_files
from trainers.channels.rows import Categories, distinct

LANDS, ZIPS = ["A b", "CH", "DE", "FR", "ÖS"], [7, 99, 10115]


def one_frame(folder: Path) -> Channel:
    return Channel.of(FRAME, categorical=NAMED)


def of_pandas(folder: Path) -> Channel:
    return Channel.of(FRAME.assign(**{name: FRAME[name].astype("category") for name in NAMED}))


def arrow(folder: Path) -> Channel:
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    table = table.set_column(1, "land", table["land"].dictionary_encode())
    parts = [pa.table({**dict(zip(part.column_names, part.columns, strict=True))}) for part in (table[:5], table[5:])]
    return Channel.of(pa.concat_tables(parts), categorical="zip")


def arrow_parts(folder: Path) -> Channel:
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    return Channel.of((table.drop_columns(["y"]), table["y"]), categorical=[0, -1])


def csv(folder: Path) -> Channel:
    for number, part in enumerate((FRAME[:3], FRAME[3:6], FRAME[6:])):
        part.to_csv(folder / f"part-{number}.csv", index=False)
    return Channel.of(f"{folder}/part-*.csv", categorical=NAMED)


def parquet(folder: Path) -> Channel:
    for number, part in enumerate((FRAME[:3], FRAME[3:6], FRAME[6:])):
        part.to_parquet(folder / f"part-{number}.parquet", row_group_size=2)
    return Channel.of(str(folder), categorical=(1, "zip"))


def dictionaries(folder: Path) -> Channel:
    """Each file knows only its own."""
    for number, part in enumerate((FRAME[:6], FRAME[6:])):
        part.assign(land=part["land"].astype("category")).to_parquet(folder / f"part-{number}.parquet")
    return Channel.of(str(folder), categorical="zip")


SOURCES: list[Callable[[Path], Channel]] = [one_frame, of_pandas, arrow, arrow_parts, csv, parquet, dictionaries]


@pytest.mark.parametrize("source", SOURCES)
def test_each_category_has_one_code_on_all_workers(source: Callable[[Path], Channel], tmp_path: Path) -> None:
    channel = source(tmp_path)
    assert [list(categories.values) for categories in channel.coding.values()] == [LANDS, ZIPS]
    shards = [channel.read(rank, 3) for rank in range(3)]
    for shard in [*shards, channel.read_whole()]:
        assert shard.feature_names == ("land", "x", "zip")
        assert shard.features["land"].cat.categories.tolist() == LANDS
        assert shard.features["zip"].cat.categories.tolist() == ZIPS
        assert shard.features["x"].dtype == np.float32
        expected = decoded(FRAME.iloc[shard.labels.astype(int)][["land", "x", "zip"]])
        assert decoded(shard.features) == expected
    assert sorted(np.concatenate([shard.labels for shard in shards])) == list(range(12))
    assert decoded(interleave(shards).features) == decoded(
        FRAME.iloc[interleave(shards).labels.astype(int)][["land", "x", "zip"]]
    )
    described = json.loads(json.dumps(channel.describe()))["categorical"]
    assert described == {"land": {"count": 5, "first": LANDS}, "zip": {"count": 3, "first": ZIPS}}


@pytest.mark.parametrize("source", [csv, parquet, dictionaries])
def test_files_are_opened_again_with_the_same_codes(source: Callable[[Path], Channel], tmp_path: Path) -> None:
    channel = source(tmp_path)
    again = open_files(**json.loads(json.dumps(channel.source.reopened_with())))  # type: ignore[attr-defined]
    assert again.fingerprint() == channel.fingerprint()
    assert again.coding == channel.coding


def test_a_declared_order_is_kept_and_so_is_what_no_row_has(tmp_path: Path) -> None:
    data = frame(4).assign(size=pd.Categorical(list("SMSM"), ["S", "M", "L"], ordered=True))
    assert Channel.of(data).coding[2].values == ("S", "M", "L")
    assert Channel.of(data, categorical=["size"]).coding[2].values == ("S", "M", "L")
    data.to_parquet(tmp_path / "rows.parquet")
    assert Channel.of(tmp_path / "rows.parquet").coding[2].values == ("L", "M", "S")
    other = data.assign(size=data["size"].cat.reorder_categories(["M", "L", "S"]))
    assert Channel.of(other).fingerprint() != Channel.of(data).fingerprint()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_directories_may_be_categories(tmp_path: Path, kind: str) -> None:
    for place in ("land=ÖS/day=1", "land=A%20b/day=1", "land=__HIVE_DEFAULT_PARTITION__/day=2"):
        (tmp_path / place).mkdir(parents=True)
        data = frame(3)
        data.to_csv(tmp_path / place / "a.csv", index=False) if kind == "csv" else data.to_parquet(
            tmp_path / place / "a.parquet"
        )
    channel = Channel.of(tmp_path, categorical=["land", "day"])
    assert {at: categories.values for at, categories in channel.coding.items()} == {2: ("A b", "ÖS"), 3: (1, 2)}
    held = pd.concat([channel.read(rank, 2).features for rank in range(2)])
    assert sorted(map(str, held["land"])) == sorted(["A b", "ÖS", "nan"] * 3)
    again = open_files(**json.loads(json.dumps(channel.source.reopened_with())))  # type: ignore[attr-defined]
    assert again.fingerprint() == channel.fingerprint()
    numbers = Channel.of(tmp_path, categorical="land").read_whole().features["day"]
    assert sorted(numbers) == [1] * 6 + [2] * 3


def test_cells_of_csv_are_numbers_where_all_of_them_are(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("y,a,b,c,d\n1,10,01,1,1.0\n0,-2,2,x,2\n")
    (tmp_path / "2.csv").write_text("y,a,b,c,d\n1,9,,,\n")
    coding = Channel.of(tmp_path, categorical=list("abcd")).coding
    found = [categories.values for categories in coding.values()]
    assert found == [(-2, 9, 10), ("01", "2"), ("1", "x"), ("1.0", "2")]


def test_without_names_columns_are_given_by_position(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1,DE,2\n0,FR,3\n")
    table = Channel.of(tmp_path / "rows.csv", categorical=[1], header=False).read_whole()
    assert table.feature_names is None
    assert table.features["0"].tolist() == ["DE", "FR"]


@pytest.mark.parametrize("kind", ["memory", "csv", "parquet", "dictionaries"])
def test_other_channels_have_the_codes_of_train(kind: str, tmp_path: Path) -> None:
    part = FRAME[3:6]
    if kind == "dictionaries":
        part = part.assign(land=pd.Categorical(part["land"], ["FR", "nowhere", "ÖS", "DE"]))
    source: Any = Channel.of(part, categorical=NAMED)
    if kind != "memory":
        path = tmp_path / ("rows.csv" if kind == "csv" else "rows.parquet")
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
        source = Channel.of(path, categorical=NAMED)
    channels = open_channels({"validation": source, "train": Channel.of(FRAME, categorical=NAMED)})
    features = channels["validation"].read_whole().features
    assert features["land"].cat.categories.tolist() == LANDS
    assert features["land"].tolist() == ["ÖS", "DE", "FR"]
    assert features["zip"].tolist() == [7, 7, 7]
    assert channels["validation"].coding == channels["train"].coding


@pytest.mark.parametrize("kind", ["memory", "csv", "parquet"])
def test_a_category_that_train_does_not_have_is_named_with_file_and_row(kind: str, tmp_path: Path) -> None:
    for number in range(10):
        part = FRAME.assign(land=FRAME["land"].where(FRAME.index != 8, "XX")) if number == 9 else FRAME
        part.to_csv(tmp_path / f"{number}.csv", index=False)
        part.to_parquet(tmp_path / f"{number}.parquet", row_group_size=5)
    source: Any = part if kind == "memory" else f"{tmp_path}/*.{kind}"
    where = () if kind == "memory" else (f"9.{kind}",)
    with refuses(DataError, field=("'validation'", *where, "row 9", "land"), value="XX", remedy="'train'"):
        open_channels(
            {"train": Channel.of(FRAME, categorical=NAMED), "validation": Channel.of(source, categorical=NAMED)}
        )


def test_a_column_is_categorical_in_all_channels() -> None:
    train, other = FRAME.assign(land=1.0), FRAME.assign(land=1.0)
    with refuses(DataError, field=("'validation'", "zip"), remedy=("'train'", "categorical")):
        open_channels({"train": train, "validation": Channel.of(other, categorical="zip")})
    channels = open_channels({"train": Channel.of(train, categorical="zip"), "validation": other})
    assert channels["validation"].coding == channels["train"].coding


@pytest.mark.parametrize("kind", ["memory", "csv", "parquet", "dictionaries"])
@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("name", NAMED)
def test_where_all_values_are_missing_categories_are_those_of_train(
    name: str, missing: Any, kind: str, tmp_path: Path
) -> None:
    part = FRAME[3:6].assign(**{name: missing})
    source: Any = Channel.of(part, categorical=NAMED)
    if kind == "dictionaries":
        part = part.assign(**{name: pd.Categorical([None] * 3)})
    if kind != "memory":
        path = tmp_path / ("rows.csv" if kind == "csv" else "rows.parquet")
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
        source = Channel.of(path, categorical=NAMED)
    channels = open_channels({"train": Channel.of(FRAME, categorical=NAMED), "validation": source})
    for channel in channels.values():
        channel.look(2)
    features = channels["validation"].read_whole().features
    assert features[name].isna().all()
    assert channels["validation"].coding == channels["train"].coding
    assert features.dtypes.equals(channels["train"].read_whole().features.dtypes)


def test_numbers_are_no_text() -> None:
    other = FRAME.assign(land=1)
    with refuses(DataError, field=("'validation'", "row 1", "land"), value=1, remedy="'train'"):
        open_channels(
            {"train": Channel.of(FRAME, categorical=NAMED), "validation": Channel.of(other, categorical=NAMED)}
        )


@pytest.mark.parametrize("kind", ["memory", "csv", "parquet"])
def test_wrong_columns_are_errors(kind: str, tmp_path: Path) -> None:
    def look(categorical: Any, **change: Any) -> Callable[[], object]:
        data = FRAME.assign(**change)
        source: Any = data
        if kind != "memory":
            source = tmp_path / f"rows{len(change)}.{kind}"
            data.to_csv(source, index=False) if kind == "csv" else data.to_parquet(source)
        return lambda: Channel.of(source, categorical=categorical).look()

    refuses_each(
        [
            (look(["y"]), ("categorical", "'y'", "target")),
            (look(["lnad"]), ("categorical", "lnad", "land")),
            (look(9), ("categorical", 9, 4, 0, 3)),
            (look({"land"}), ("categorical", {"land"}, "list")),
        ],
        ConfigurationError,
    )
    refuses_each(
        [
            (look([]), ("land", "drop", "categorical")),
            (look(NAMED, land=None), ("land", "categorical", "missing")),
        ],
        DataError,
    )


@pytest.mark.parametrize("kind", ["memory", "parquet"])
def test_other_values_than_text_and_whole_numbers_are_errors(kind: str, tmp_path: Path) -> None:
    def source(values: Any) -> Any:
        data = FRAME.assign(land=values)
        if kind == "memory":
            return data
        data.to_parquet(tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet"

    with refuses(DataError, field=("'x'", "categorical"), value="0.25", remedy=("text", "whole")):
        Channel.of(source(1), categorical="x")
    for values in (FRAME["x"] > 1, pd.Timestamp("2024-01-01"), [b"\xff"] * 12):
        with refuses(DataError, field=("land", "categorical")):
            Channel.of(source(values), categorical="land")
    assert Channel.of(source([1.0, np.nan] * 6), categorical="land").coding[0].values == (1,)


def test_mixed_values_of_a_frame_are_an_error() -> None:
    with refuses(DataError, field=("land", "categorical"), remedy=("text", "whole")):
        Channel.of(FRAME.assign(land=["a", 1] * 6), categorical="land")


def test_files_with_text_and_with_numbers_are_an_error(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "1.parquet")
    FRAME.assign(land=5).to_parquet(tmp_path / "2.parquet")
    with refuses(DataError, field=("land", "categorical"), value=5, remedy=("text", "numbers")) as told:
        Channel.of(tmp_path, categorical=NAMED)
    assert missing_names(str(told.value), *LANDS) != LANDS, "one of them is shown"


def test_text_that_is_no_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"y,a\n1,DE\n0,\xff\n")
    with refuses(DataError, field=("rows.csv", "line 3"), remedy="UTF-8"):
        Channel.of(tmp_path / "rows.csv", categorical="a")


def test_a_ragged_row_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("y,a\n1,DE\n0,FR,2\n")
    with refuses(DataError, field=("rows.csv", "line 3"), value=3, remedy="2"):
        Channel.of(tmp_path / "rows.csv", categorical="a")


def test_an_array_has_no_categories() -> None:
    for source in (np.ones((4, 3)), (np.ones((4, 3)), np.ones(4))):
        with refuses(ConfigurationError, field="categorical", value=[1], remedy="DataFrame"):
            Channel.of(source, categorical=[1])


def test_who_takes_numbers_refuses_categories() -> None:
    channels = open_channels({"train": Channel.of(FRAME, categorical=NAMED)})
    with refuses(
        ConfigurationError,
        field=("'train'", "categories", "land"),
        remedy=("TorchTrainer", "numbers", "pandas.get_dummies"),
    ):
        TorchTrainer(lambda context: None).checked(channels)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
VALUES = st.lists(TEXT, min_size=1, max_size=30) | st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=30)


def no_error(place: int) -> DataError:
    return DataError(f"{place} is unseen")


@given(VALUES, st.randoms(), st.lists(st.integers(0, 30), max_size=4), st.booleans())
def test_codes_do_not_depend_on_order_and_files_and_stand_for_the_values(
    values: list[Any], random: Any, cuts: list[int], dictionary: bool
) -> None:
    blocks = [values[a:b] for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), None], strict=True)]
    kind = pa.string() if isinstance(values[0], str) else pa.int64()
    arrays = [pa.array(block, kind) for block in blocks]
    arrays = [array.dictionary_encode() if dictionary else array for array in arrays]
    categories = Categories.of(set().union(*map(distinct, arrays)))
    shuffled = random.sample(values, len(values))
    assert categories == Categories.of(distinct(pa.array(shuffled, kind)))
    for block, array in zip(blocks, arrays, strict=True):
        assert [categories.values[int(code)] for code in categories.codes(array, no_error)] == block


def test_line_ends_in_text_of_files_of_several_blocks(tmp_path: Path) -> None:
    """Arrow looks for the end of a block at a line end, which may be one within a cell."""
    (tmp_path / "rows.csv").write_text('y,note\n1,"one,\n""two"""\n0,plain\n' + '1,"one,\n""two"""\n' * 150_000)
    found = Channel.of(tmp_path / "rows.csv", target="y", categorical="note")
    assert found.coding[0].values == ('one,\n"two"', "plain")
    assert len(found.read_whole().labels) == 150_002
