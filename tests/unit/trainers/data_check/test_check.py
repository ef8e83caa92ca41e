"""What is said of channels that have something wrong with them, and of those that have not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.refusals import mentions, missing_names, refuses
from trainers import ConfigurationError, DataError, Folder
from trainers.channels import Channel, open_channels
from trainers.data_check import DataReport, check_data
from trainers.datasets import load

RANDOM = np.random.default_rng(3)
ROWS = 3000
FRAME = pd.DataFrame(RANDOM.normal(size=(ROWS, 3)).astype(np.float32), columns=["a", "b", "c"])
FRAME.insert(0, "y", ((FRAME.a + RANDOM.normal(size=ROWS)) > 0).astype(int))
HALF = ROWS // 2


def check(train: pd.DataFrame, validation: pd.DataFrame | None = None) -> DataReport:
    channels = {"train": train} if validation is None else {"train": train, "validation": validation}
    return check_data(open_channels(channels))


def test_sound_data_have_no_findings() -> None:
    report = check(FRAME[:HALF], FRAME[HALF:])
    assert report.findings == ()
    assert [(channel.name, channel.rows) for channel in report.channels] == [("train", HALF), ("validation", HALF)]


def test_weights_that_are_all_0_are_found() -> None:
    sound, wrong = (
        check_data({"train": Channel.of(FRAME.assign(w=weight), target="y", weight="w", name="train")}).findings
        for weight in (1.0, 0.0)
    )
    assert sound == ()
    [found] = wrong
    mentions(found, "train", "weight", 0)


def test_more_workers_than_rows_are_found() -> None:
    channel = Channel.of(FRAME, target="y", name="train")
    assert check_data({"train": channel}, workers=len(FRAME)).findings == ()
    [found] = check_data({"train": channel}, workers=10**20).findings
    mentions(found, "train", f"{len(FRAME):,}", "rows", "workers")


FINDINGS = {
    "a giveaway": (
        lambda train: train.assign(paid=np.where(train.y == 1, train.b, np.nan)),
        lambda other: other.assign(paid=np.where(other.y == 1, other.b, np.nan)),
        ("train", "paid", "99.3%", "label"),
    ),
    "rows of train in validation": (
        lambda train: train,
        lambda other: pd.concat([other, FRAME[:200]]),
        ("validation", 200, "11.8%", "train", "label", "score"),
    ),
    "rows that repeat anywhere": (
        lambda train: train.round(0),
        lambda other: other.round(0),
        ("validation", "train", "96.8%", "split"),
    ),
    "repeated rows": (
        lambda train: pd.concat([train, train[:100]]),
        lambda other: other,
        ("train", 100, "1,600", "repeat", "label"),
    ),
    "contradictions": (
        lambda train: pd.concat([train, train[:100].assign(y=1 - train.y[:100])]),
        lambda other: other,
        ("train", 100, "features", "labels"),
    ),
    "an empty column": (
        lambda train: train.assign(c=np.nan),
        lambda other: other.assign(c=np.nan),
        ("train", "column", "'c'", "value"),
    ),
    "constant columns": (
        lambda train: train.assign(b=1, c=2),
        lambda other: other.assign(b=1, c=2),
        ("train", "columns", "'b'", "'c'", "value"),
    ),
    "one label": (lambda train: train.assign(y=1), lambda other: other, ("train", "label", 1)),
    "a rare class": (
        lambda train: train.assign(y=np.where(np.arange(HALF) < 5, 2, train.y)),
        lambda other: other.assign(y=np.where(np.arange(HALF) < 5, 2, other.y)),
        ("train", "class 2", 5, "0.33%"),
    ),
    "a class that train lacks": (
        lambda train: train,
        lambda other: other.assign(y=np.where(np.arange(HALF) < 50, 3, other.y)),
        ("validation", "train", "class 3"),
    ),
    "another balance": (
        lambda train: train,
        lambda other: other.assign(y=(np.arange(HALF) % 5 == 0).astype(int)),
        ("validation", "train", "29%", "class"),
    ),
    "missing elsewhere": (
        lambda train: train,
        lambda other: other.assign(b=np.where(np.arange(HALF) % 2, np.nan, other.b)),
        ("validation", "missing", "train", "'b'", "50%", "0%"),
    ),
}


@pytest.mark.parametrize("wrong", FINDINGS)
def test_a_finding_says_what_is_wrong_and_where(wrong: str) -> None:
    train, other, names = FINDINGS[wrong]
    findings = check(train(FRAME[:HALF]), other(FRAME[HALF:])).findings
    assert any(not missing_names(finding, *names) for finding in findings), findings


def test_files_are_checked_as_rows_in_memory_are(tmp_path: Path) -> None:
    for part, rows in enumerate(np.array_split(np.arange(HALF), 3)):
        FRAME.iloc[rows].to_csv(tmp_path / f"{part}.csv", index=False)
    FRAME[HALF:].to_parquet(tmp_path / "validation.parquet", row_group_size=100)
    of_files = check_data(
        open_channels({"train": str(tmp_path / "*.csv"), "validation": str(tmp_path / "validation.parquet")}), workers=4
    )
    of_memory = check_data(open_channels({"train": FRAME[:HALF], "validation": FRAME[HALF:]}), workers=4)
    assert of_files.findings == of_memory.findings
    for one, other in zip(of_files.channels, of_memory.channels, strict=True):
        assert one.columns == other.columns
        assert one.labels == other.labels
        assert one.loads[0].nbytes == other.loads[0].nbytes == HALF // 4 * 4 * 4
        assert one.loads[0].workers == 4


def test_a_worker_loads_all_of_a_channel_that_each_has_whole(tmp_path: Path) -> None:
    FRAME[:100].to_csv(tmp_path / "rows.csv", index=False)
    channel = Channel.of(str(tmp_path / "rows.csv"), distribution="FullyReplicated")
    for workers in (4, 101):
        report = check_data({"train": channel}, workers=workers)
        [load] = report.channels[0].loads
        assert (load.rows, load.nbytes) == (100, 100 * 4 * 4)
        assert not [found for found in report.findings if "workers" in found]


def test_damage_is_named_by_channel_file_and_row(tmp_path: Path) -> None:
    for part in range(10):
        FRAME[:100].to_csv(tmp_path / f"{part}.csv", index=False)
    lines = (tmp_path / "9.csv").read_text().splitlines()
    lines[50] = "1,2"
    (tmp_path / "9.csv").write_text("\n".join(lines))
    with refuses(DataError, field=("'train'", "9.csv", "line 51"), value=2, remedy="4"):
        check_data({"train": Channel.of(str(tmp_path), name="train")})


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("column", "value", "name"), [("y", np.nan, "label"), ("b", np.inf, "'b'")])
def test_a_row_that_cannot_be_trained_on_is_named(
    tmp_path: Path, kind: str, column: str, value: float, name: str
) -> None:
    for part in range(3):
        frame = FRAME[:100].astype("float64")
        frame.loc[7, column] = value if part == 1 else frame.loc[7, column]
        if kind == "csv":
            frame.to_csv(tmp_path / f"{part}.csv", index=False, na_rep="nan")
        else:
            frame.to_parquet(tmp_path / f"{part}.parquet", row_group_size=5)
    with refuses(DataError, field=("'train'", f"1.{kind}", "row 8", name), value=value):
        check_data({"train": Channel.of(str(tmp_path), target="y", name="train")})


def test_other_columns_than_those_of_train_are_refused() -> None:
    with refuses(DataError, field=("'validation'", "columns"), value="'b'", remedy="'train'"):
        check(FRAME, FRAME.drop(columns="b"))


def test_a_folder_has_no_rows_to_check(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"")
    with refuses(ConfigurationError, field="'train'", value="table"):
        check_data(open_channels({"train": Folder(tmp_path)}))


def test_a_channel_alone_is_checked_without_another() -> None:
    report = check_data(open_channels({"test": FRAME}, train=False))
    assert report.overlaps == report.findings == ()


def test_numbers_are_no_classes() -> None:
    digits = load("digits").train
    labels = digits[1] + RANDOM.normal(size=len(digits[1])).astype(np.float32)
    report = check_data(open_channels({"train": (digits[0], labels)}))
    assert report.channels[0].labels.classes == {}


def test_libsvm_files_are_checked_with_one_numbering_of_columns(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1 2:2\n0 1:3\n")
    (tmp_path / "b.svm").write_text("1 1:1 4:2\n")
    report = check_data({name: Channel.of(tmp_path / f"{name[0]}.svm", name=name) for name in ("a", "b")})
    assert [(channel.name, channel.rows, len(channel.columns)) for channel in report.channels] == [
        ("a", 2, 4),
        ("b", 1, 4),
    ]


def test_a_number_that_often_stands_for_a_missing_value_is_found_where_nobody_says_that_it_does() -> None:
    frame = FRAME.assign(b=np.where(np.arange(ROWS) % 9 == 0, -999, FRAME.b))
    said, unsaid = (
        check_data({"train": Channel.of(frame, target="y", name="train", missing=missing)}).findings
        for missing in (-999, None)
    )
    assert said == ()
    [found] = unsaid
    mentions(found, "train", "'b'", "missing=-999")


def test_classes_are_found_by_the_names_that_the_user_gave_them() -> None:
    train = FRAME.assign(y=np.where(FRAME.y == 1, "yes", "no"))
    found = check(train[:HALF], train[HALF:][train.y[HALF:] == "no"]).findings
    mentions(next(each for each in found if "every label" in each), "validation", "'no'")
    mentions(next(each for each in found if "no row of" in each), "validation", "'yes'")


def test_labels_that_are_numbers_with_thousands_separators_are_found() -> None:
    prices = [f"{1000 + at % 60:,}" if at % 2 else str(at % 60) for at in range(ROWS)]
    [found] = check(FRAME.assign(y=prices)).findings
    mentions(found, "train", "'1,001'", "thousands separators", 60, "1001")
    for classes in (["1,2", "3"], ["1,234", "many"], ["1", "2"]):
        found = " ".join(check(FRAME.assign(y=[classes[at % 2] for at in range(ROWS)])).findings)
        assert "thousands" not in found


def test_a_column_that_counts_the_rows_is_found() -> None:
    counted = FRAME.assign(n=np.arange(ROWS) + 7)
    report = check(counted[:HALF], counted[HALF:])
    [found] = report.findings
    mentions(found, "train", "'n'", "counter of rows", "drop=['n']")
    assert [column.name for column in report.channels[0].columns if column.counts_rows] == ["n"]
    for other in (RANDOM.permutation(ROWS), np.arange(ROWS) * 2, np.arange(ROWS) // 2, np.arange(ROWS) + 0.5):
        assert not check(FRAME.assign(n=other)).findings
    assert not check(FRAME[["y"]].assign(n=np.arange(ROWS) % 2)[:19]).channels[0].columns[0].counts_rows


@pytest.mark.parametrize("kind", ["category", "float64"])
def test_rows_of_a_frame_are_counted_too(kind: str) -> None:
    plan = pd.Series(["a", "b"] * HALF).astype("category")
    report = check(FRAME.assign(n=np.arange(ROWS).astype(float), plan=plan if kind == "category" else 0.5))
    assert [column.name for column in report.channels[0].columns if column.counts_rows] == ["n"]
