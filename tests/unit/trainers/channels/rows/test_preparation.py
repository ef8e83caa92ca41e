"""Columns of a table as it comes: target, text labels, dates, identifiers, a sentinel, and columns in any order."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from tests.support.properties import examples
from tests.support.refusals import refuses, refuses_each
from trainers.channels import Channel, label_summary, open_channels, predicts, prepared
from trainers.channels.rows import Preparation, column_numbers, is_identifier_name, text_problem
from trainers.errors import ConfigurationError, DataError

ROWS = 40
TABLE = pd.DataFrame(
    {
        "customer_id": np.arange(ROWS) + 1000,
        "signup_date": pd.date_range("2024-01-01", periods=ROWS).strftime("%Y-%m-%d"),
        "plan": ["basic", "pro"] * (ROWS // 2),
        "active": [True, False, False, True] * (ROWS // 4),
        "age": [30, -999, 41, 52] * (ROWS // 4),
        "churned": ["yes", "no", "no", "no"] * (ROWS // 4),
    }
)
FIRST_DAY = (datetime.date(2024, 1, 1) - datetime.date(1970, 1, 1)).days
KINDS = ["memory", "csv", "parquet", "arrow"]


def source(kind: str, folder: Path, table: pd.DataFrame = TABLE, **csv: Any) -> Any:
    """A table as a source of that kind."""
    if kind == "memory":
        return table
    if kind == "arrow":
        return pa.Table.from_pandas(table)
    path = folder / f"rows-{len(list(folder.iterdir()))}.{kind}"
    table.to_csv(path, **{"index": False, **csv}) if kind == "csv" else table.to_parquet(path)
    return path


SAID: dict[str, Any] = {"target": "churned", "categorical": ["plan"], "missing": -999}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_trains_as_it_comes(kind: str, tmp_path: Path) -> None:
    channel = Channel.of(source(kind, tmp_path), name="train", **SAID)
    table = channel.read_whole()
    assert table.feature_names == ("signup_date", "plan", "active", "age")
    assert table.features["signup_date"].tolist() == [FIRST_DAY + day for day in range(ROWS)]
    assert table.features["active"].tolist()[:4] == [1, 0, 0, 1]
    assert table.features["age"].isna().tolist() == (TABLE["age"] == -999).tolist()
    assert table.labels.tolist() == (TABLE["churned"] == "yes").astype(float).tolist()
    assert channel.classes == ("no", "yes")
    assert channel.preparation == {
        "target": "churned",
        "classes": ["no", "yes"],
        "dates": ["signup_date"],
        "missing": -999.0,
    }
    assert channel.describe()["identifiers"] == ["customer_id"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [2, 3])
def test_shards_are_the_rows_of_all(kind: str, workers: int, tmp_path: Path) -> None:
    channel = Channel.of(source(kind, tmp_path), **SAID)
    whole = channel.read_whole()
    for rank in range(workers):
        shard = channel.read(rank, workers)
        pd.testing.assert_frame_equal(
            shard.features.reset_index(drop=True), whole.features.iloc[rank::workers].reset_index(drop=True)
        )
        assert shard.labels.tolist() == whole.labels[rank::workers].tolist()


# ---- the target


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["target", "Label", "labels", "Y", "class", "OUTCOME"])
def test_one_usual_name_is_the_target_wherever_it_stands(kind: str, name: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1.0, 2, 3], name: [0, 1, 0], "b": [4.0, 5, 6]})
    channel = Channel.of(source(kind, tmp_path, table))
    assert channel.describe()["target"] == name
    assert channel.read_whole().labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_nothing_tells_is_asked_for(kind: str, tmp_path: Path) -> None:
    numbers = pd.DataFrame({"a": [1.0, 2, 3], "b": [4.0, 5, 6]})
    with refuses(ConfigurationError, field=("target", "'a'", "'b'"), remedy="target="):
        Channel.of(source(kind, tmp_path, numbers))
    with refuses(ConfigurationError, field=("target", "'y'", "'label'"), remedy="target='y'"):
        Channel.of(source(kind, tmp_path, numbers.set_axis(["y", "label"], axis=1).assign(c=1.0)))


def test_of_columns_without_names_the_first_is_the_target(tmp_path: Path) -> None:
    rows = np.array([[1.0, 2, 3], [0, 5, 6]])
    path = tmp_path / "rows.csv"
    pd.DataFrame(rows).to_csv(path, index=False, header=False)
    for each in (rows, pd.DataFrame(rows), path):
        assert Channel.of(each).read_whole().labels.tolist() == [1, 0]


# ---- what a model predicts


def test_predicts_names_the_target_and_what_it_is() -> None:
    def of(**frame: Any) -> str:
        return predicts(Channel.of(pd.DataFrame({"a": [1.0, 2, 3], **frame})).look().describe())

    assert of(y=[0, 1, 0]) == "y, 2 classes"
    assert of(y=["no", "yes", "maybe"]) == "y, 3 classes (maybe, no, yes)"
    assert of(y=["a, b", "c", "a, b"]) == "y, 2 classes ('a, b', c)"
    assert of(y=[3, 90.5, 7]) == "y, a number from 3 to 90.5"
    assert of(y=[0, 2, 0]) == "y, a number from 0 to 2"
    assert predicts(Channel.of(np.array([[0.0, 1], [1, 2]])).look().describe()) == "column 0, 2 classes"


@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=30))
def test_labels_are_classes_or_a_range(labels: list[float]) -> None:
    found = label_summary(np.array(labels, np.float32))
    if "classes" in found:
        assert set(labels) == set(range(found["classes"]))
    else:
        assert (found["least"], found["greatest"]) == (min(labels), max(labels))


# ---- identifiers, and columns that are left out


@pytest.mark.parametrize("kind", KINDS)
def test_identifiers_are_left_out_unless_they_are_kept(kind: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"uuid": [f"u{row}" for row in range(6)], "userId": range(6), "x": range(6), "y": [0, 1] * 3})
    channel = Channel.of(source(kind, tmp_path, table))
    assert channel.read_whole().feature_names == ("x",)
    assert "keep=['uuid', 'userId']" in prepared(channel.describe())[0]
    assert Channel.of(source(kind, tmp_path, table), keep="userId").read_whole().feature_names == ("userId", "x")
    again = Channel.of(source(kind, tmp_path, table.assign(userId=[1, 1, 2, 3, 4, 5])))
    assert again.read_whole().feature_names == ("userId", "x"), "a value is there twice"


@pytest.mark.parametrize("kind", KINDS)
def test_identifiers_stay_where_there_is_nothing_else_to_learn_from(kind: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"y": [0, 1, 0], "row_id": [1, 2, 3]})
    assert Channel.of(source(kind, tmp_path, table)).read_whole().feature_names == ("row_id",)


def test_an_index_that_pandas_wrote_is_left_out(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [5, 6, 7], "y": [0, 1, 0]})
    assert Channel.of(source("csv", tmp_path, table, index=True)).read_whole().feature_names == ("x",)
    read_back = pd.read_csv(source("csv", tmp_path, table, index=True))
    assert Channel.of(read_back).describe()["identifiers"] == ["Unnamed: 0"]


def test_identifiers_are_told_by_their_names() -> None:
    assert all(map(is_identifier_name, ["id", "ID", "customer_id", "order-id", "uuid", "row uuid", "userId", ""]))
    assert not any(map(is_identifier_name, ["paid", "valid", "grid", "idle", "identity", "x"]))


@pytest.mark.parametrize("kind", [*KINDS, "array"])
def test_columns_to_leave_out(kind: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"y": [0, 1, 0], "a": [1.0, 2, 3], "b": [4.0, 5, 6], "c": [7.0, 8, 9]})
    given = table.to_numpy() if kind == "array" else source(kind, tmp_path, table)
    channel = Channel.of(given, target=0, drop=[1, 3])
    assert channel.read_whole().features.tolist() == [[4], [5], [6]]
    assert channel.fingerprint() != Channel.of(given, target=0).fingerprint()


# ---- other channels


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_columns_of_other_channels_are_found_by_their_names(kind: str, other: str, tmp_path: Path) -> None:
    turned = TABLE[TABLE.columns[::-1]].iloc[:10]
    channels = open_channels(
        {
            "train": Channel.of(source(kind, tmp_path), name="train", **SAID),
            "validation": Channel.of(source(other, tmp_path, turned), name="validation", **SAID),
        }
    )
    whole, part = channels["train"].read_whole(), channels["validation"].read_whole()
    pd.testing.assert_frame_equal(part.features, whole.features.iloc[:10])
    assert part.labels.tolist() == whole.labels[:10].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_text_labels_of_other_channels_have_the_classes_of_train(kind: str, tmp_path: Path) -> None:
    def opened(validation: pd.DataFrame) -> dict[str, Channel]:
        return open_channels(
            {
                "train": Channel.of(TABLE, name="train", **SAID),
                "validation": Channel.of(source(kind, tmp_path, validation), name="validation", **SAID),
            }
        )

    only_yes = TABLE[TABLE["churned"] == "yes"]
    assert set(opened(only_yes)["validation"].read_whole().labels) == {1.0}
    with refuses(DataError, field=("'validation'", "labels"), value="maybe", remedy="'train'"):
        opened(TABLE.assign(churned=["maybe", "no"] * (ROWS // 2)))
    with refuses(DataError, field=("'validation'", "labels"), value="numbers", remedy="alike"):
        opened(TABLE.assign(churned=1.0))


# ---- problems


@pytest.mark.parametrize("kind", KINDS)
def test_all_problems_of_a_table_are_told_at_once(kind: str, tmp_path: Path) -> None:
    table = TABLE.assign(country="DE")
    with refuses(ConfigurationError, field=("nope", "zzz", "'country'"), value="DE", remedy=("categorical", "drop")):
        Channel.of(source(kind, tmp_path, table), target="churned", categorical=["plan", "nope"], drop=["zzz"])
    with refuses(DataError, field=("'plan'", "'country'"), remedy="categorical=['plan', 'country']"):
        Channel.of(source(kind, tmp_path, table), target="churned")
    with refuses(DataError, field=("'train'", "'validation'", "'plan'")):
        open_channels(
            {name: Channel.of(TABLE, name=name, **SAID) for name in ("test",)}
            | {name: TABLE.rename(columns={"churned": "y"}) for name in ("train", "validation")}
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_is_no_date_is_shown_of_a_column_of_dates(kind: str, tmp_path: Path) -> None:
    table = TABLE.assign(signup_date=["2024-01-31", "soon"] * (ROWS // 2))
    with refuses(DataError, field="'signup_date'", value="'soon'", remedy="drop"):
        Channel.of(source(kind, tmp_path, table), **SAID)


def test_columns_without_a_value_are_missing_numbers(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2, 3], "note": pd.array([None] * 3, "string"), "y": [0, 1, 0]})
    for kind in KINDS:
        assert np.isnan(Channel.of(source(kind, tmp_path, table)).read_whole().features[:, 1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_true_and_false_may_be_missing(kind: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [True, None, False], "y": [0, 1, 0]})
    found = Channel.of(source(kind, tmp_path, table)).read_whole().features[:, 0]
    np.testing.assert_array_equal(found, [1, np.nan, 0])


def test_wrong_arguments_are_errors() -> None:
    def opened(**said: Any) -> Callable[[], object]:
        return partial(Channel.of, TABLE, **{**SAID, **said})

    refuses_each(
        [
            (opened(missing="x"), ("missing", "'x'", "number")),
            (opened(missing=True), ("missing", "True", "number")),
            (opened(missing=np.inf), ("missing", "inf", "number")),
            (opened(drop={"plan"}), ("drop", "list")),
            (opened(drop=["churned"]), ("'churned'", "dropped", "target")),
            (opened(keep=["custmer_id"]), ("keep", "custmer_id", "customer_id")),
        ],
        ConfigurationError,
    )
    assert Channel.of(TABLE, **{**SAID, "missing": np.nan}).describe().get("missing") is None
    assert Channel.of(TABLE, **{**SAID, "missing": np.float32(-999)}).describe()["missing"] == -999


# ---- dates


@given(st.lists(st.none() | st.dates(datetime.date(1800, 1, 1), datetime.date(2200, 1, 1)), min_size=1, max_size=20))
@settings(max_examples=examples(10))
def test_dates_are_days_whatever_they_are_stored_as(dates: list[datetime.date | None]) -> None:
    expected = [np.nan if date is None else (date - datetime.date(1970, 1, 1)).days for date in dates]
    text = pa.array([None if date is None else date.isoformat() for date in dates], pa.string())
    days = pa.array(dates, pa.date32())
    arrays = [days, days.cast(pa.timestamp("ms")), days.cast(pa.timestamp("us"))]
    for array in [*arrays, *([text] if text.null_count < len(text) else [])]:
        np.testing.assert_array_equal(column_numbers(array), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["2024-01-01 12:00:00", "2024-01-01T12:00:00Z", "2024-01-01T14:00:00+02:00"])
def test_times_of_day_are_parts_of_days(kind: str, form: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"at": [form] * 3, "x": [1, 2, 3], "y": [0, 1, 0]})
    assert Channel.of(source(kind, tmp_path, table)).read_whole().features[:, 0].tolist() == [FIRST_DAY + 0.5] * 3


def test_a_preparation_that_changes_nothing_leaves_the_fingerprint() -> None:
    assert Preparation().digest() == ()


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("31/12/2023", "2024-01-31"),
        ("31.12.2023", "2024-01-31"),
        ("1,234", "1234.5"),
        ("0,5", "1234.5"),
        ("12%", "1234.5"),
        ("$ 1,234.50", "1234.5"),
        ("basic, monthly", None),
        ("A 12", None),
    ],
)
def test_text_that_looks_like_a_date_or_a_number_says_how_it_is_read(value: str, right: str | None) -> None:
    text = str(text_problem({"c": f"{value!r} in line 2"}))
    assert {each for each in ("2024-01-31", "1234.5") if each in text} == ({right} if right else set())
