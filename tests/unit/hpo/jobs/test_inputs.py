"""What a record says of a job's channels opens the same rows again, and refuses others."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from hpo.jobs.files.inputs import (
    check_same,
    copy_inputs,
    dataset_channels,
    open_inputs,
    record_inputs,
    remove_copies,
)
from tests.support.refusals import refuses
from trainers import Channel, DataError, Folder, storage
from trainers.channels import open_channels

ROWS = np.random.default_rng(7).normal(size=(40, 4)).astype(np.float32)
FRAME = pandas.DataFrame(ROWS, columns=["y", "a", "b", "c"]).assign(y=lambda frame: (frame.y > 0) * 1)


def recorded(source: Any, folder: Path, **options: Any) -> tuple[dict[str, Channel], dict[str, Any]]:
    """Channels, and what a record says of them once their copies were made."""
    channels = open_channels({"train": source})
    about = record_inputs(channels, str(folder / "job"), **options)
    copy_inputs(about, channels)
    return channels, json.loads(json.dumps(about))


def check_alike(one: Channel, other: Channel) -> None:
    """The same rows, the same names, the same digest."""
    mine, theirs = one.read_whole(), other.read_whole()
    assert one.name == other.name
    assert type(mine.features) is type(theirs.features)
    if isinstance(mine.features, np.ndarray):
        np.testing.assert_array_equal(mine.features, theirs.features)
    else:
        pandas.testing.assert_frame_equal(mine.features, theirs.features)
    np.testing.assert_array_equal(mine.labels, theirs.labels)
    assert mine.feature_names == theirs.feature_names
    assert mine.said.keys() == theirs.said.keys() == set(one.said)
    for role, numbers in mine.said.items():
        np.testing.assert_array_equal(numbers, theirs.said[role])
    assert one.source.heading == other.source.heading
    assert one.fingerprint() == other.fingerprint()


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(FRAME, id="a frame"),
        pytest.param(FRAME.astype({"a": "float64"}).rename(columns={"b": 3}), id="mixed types and names"),
        pytest.param(FRAME.assign(c=np.where(FRAME.c > 1, np.nan, FRAME.c)), id="missing values"),
        pytest.param(ROWS, id="an array"),
        pytest.param((ROWS[:, 1:], (ROWS[:, 0] > 0).astype(int)), id="a pair"),
        pytest.param((FRAME[["a", "b"]], FRAME.y), id="a pair of pandas"),
        pytest.param(Channel.of(FRAME, target="c"), id="another target"),
        pytest.param(
            FRAME.assign(b=pandas.Categorical(["x", None, "z", "x"] * 10, categories=["z", "unused", "x"])),
            id="categories",
        ),
        pytest.param((ROWS[:, 1:], ROWS[:, 0], {"base_margin": ROWS[:, :2]}), id="margins apart"),
        pytest.param(Channel.of(FRAME.abs(), weight="c", base_margin="b"), id="weights and margins"),
        pytest.param(
            Channel.of(FRAME.assign(label=pandas.Categorical([1, 2] * 20, ordered=True)), target="y"),
            id="a feature called label",
        ),
        pytest.param(
            Channel.of(FRAME.assign(since="2024-01-31", y=["no", "yes"] * 20, id=range(40)), target="y", missing=0),
            id="prepared",
        ),
    ],
)
def test_rows_in_memory_are_copied_and_opened_again(source: Any, tmp_path: Path) -> None:
    channels, about = recorded(source, tmp_path)
    check_alike(channels["train"], open_inputs(about)["train"])


def test_copies_of_a_job_that_finds_its_name_taken_replace_none(tmp_path: Path) -> None:
    channels, about = recorded(FRAME, tmp_path)
    recorded(FRAME.assign(a=1.0), tmp_path)
    check_alike(channels["train"], open_inputs(about)["train"])


@pytest.mark.parametrize(
    "kind", ["csv", "parquet", "csv without names", "several files", "weights", "categories", "prepared"]
)
def test_files_are_opened_where_they_are(kind: str, tmp_path: Path) -> None:
    source: Any = tmp_path / "rows.csv"
    if kind == "csv":
        FRAME.to_csv(source, index=False, sep=";")
        source = Channel.of(str(source), target="b", delimiter=";")
    elif kind == "parquet":
        source = tmp_path / "rows.parquet"
        FRAME.to_parquet(source)
    elif kind == "prepared":
        FRAME.assign(since="2024-01-31", y=["no", "yes"] * 20, id=range(40), my_id=range(40)).to_csv(
            source, index=False
        )
        source = Channel.of(str(source), target="y", missing=0, drop="a", keep="my_id")
    elif kind == "csv without names":
        FRAME.to_csv(source, index=False, header=False)
    elif kind == "weights":
        FRAME.abs().to_parquet(source := tmp_path / "rows.parquet")
        source = Channel.of(str(source), weight="c", base_margin="a")
    elif kind == "categories":
        FRAME.assign(a=list("xyzw") * 10, c=list("MS") * 20).astype({"c": "category"}).to_parquet(
            source := tmp_path / "rows.parquet"
        )
        source = Channel.of(str(source), categorical=["a"])
    else:
        source = tmp_path / "part-*.csv"
        for part in (1, 2):
            FRAME.to_csv(tmp_path / f"part-{part}.csv", index=False)
    channels, about = recorded(source if isinstance(source, Channel) else str(source), tmp_path)
    check_alike(channels["train"], open_inputs(about)["train"])
    assert not (tmp_path / "job").exists(), "files are not copied"


@pytest.mark.parametrize("name", ["rows.csv", "rows.svm"])
def test_a_file_is_read_once_for_the_record(name: str, tmp_path: Path) -> None:
    """For its digest among all of the channel, and its own."""
    text = FRAME.to_csv(index=False) if name == "rows.csv" else "1 1:0.5\n0 2:1\n"
    (tmp_path / name).write_text(text)
    channels, reads = open_channels({"train": str(tmp_path / name)}), []

    class Counting:
        def __init__(self, filesystem: Any) -> None:
            self._filesystem = filesystem

        def __getattr__(self, called: str) -> Any:
            return getattr(self._filesystem, called)

        def open_input_stream(self, path: str, **options: Any) -> Any:
            reads.append(path)
            return self._filesystem.open_input_stream(path, **options)

    source = channels["train"].source
    object.__setattr__(source, "filesystem", Counting(source.filesystem))
    about = record_inputs(channels, str(tmp_path / "job"))["train"]
    assert reads == [str(tmp_path / name)]
    assert about["fingerprint"] == channels["train"].fingerprint()
    assert about["parts"] == dict(channels["train"].parts())


def test_a_named_dataset_is_loaded_again() -> None:
    channels = dataset_channels("digits", repeat=2)
    about = json.loads(json.dumps(record_inputs(channels, "/nowhere")))
    opened = open_inputs(about)
    assert list(opened) == ["train", "validation", "test"]
    for name, channel in channels.items():
        check_alike(channel, opened[name])


def test_other_rows_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    FRAME.to_csv(file, index=False)
    _, about = recorded(str(file), tmp_path)
    FRAME.assign(a=0).to_csv(file, index=False)
    with refuses(DataError, field=("channel", "train"), value="rows.csv"):
        open_inputs(about)


CHANGES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "another value": (FRAME.assign(a=0), ("column", "'a'")),
    "another name": (FRAME.rename(columns={"a": "d"}), ("column", "'d'", "'a'")),
    "fewer rows": (FRAME.iloc[:-1], ("rows", f"{len(FRAME) - 1}", f"{len(FRAME)}")),
    "another order": (FRAME[[FRAME.columns[0], *reversed(FRAME.columns[1:])]], ("columns", "order")),
    "other labels": (FRAME.assign(**{FRAME.columns[0]: 1 - FRAME.iloc[:, 0]}), ("labels",)),
    "another column more": (FRAME.assign(more=1.0), ("column", "'more'")),
    "weights": (Channel.of(FRAME.assign(b=1), weight="b"), ("weight", "column", "'b'")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_refusal_says_what_has_changed(change: str, tmp_path: Path) -> None:
    _, about = recorded(FRAME, tmp_path)
    other, named = CHANGES[change]
    with refuses(DataError, field=("channel", "train", *named)):
        check_same(about, open_channels({"train": other}))


def test_files_that_came_and_went_are_named(tmp_path: Path) -> None:
    for part in ("1", "2", "3"):
        FRAME.to_csv(tmp_path / f"{part}.csv", index=False)
    _, about = recorded(str(tmp_path), tmp_path / "of-the-job")
    (tmp_path / "2.csv").rename(tmp_path / "4.csv")
    FRAME.assign(a=0).to_csv(tmp_path / "3.csv", index=False)
    with refuses(DataError, field=("channel", "train", "4.csv", "2.csv", "3.csv")) as refused:
        check_same(about, open_channels({"train": str(tmp_path)}))
    assert "1.csv" not in str(refused.value)


def test_channels_are_opened_again_with_the_codes_of_train(tmp_path: Path) -> None:
    for name, values in (("train", "xyzw"), ("validation", "zx")):
        FRAME.assign(a=(list(values) * 20)[:40]).to_csv(tmp_path / f"{name}.csv", index=False)
    paths = {name: str(tmp_path / f"{name}.csv") for name in ("train", "validation")}
    channels = open_channels({name: Channel.of(path, categorical="a") for name, path in paths.items()})
    about = json.loads(json.dumps(record_inputs(channels, str(tmp_path / "job"))))
    opened = open_inputs(about)
    assert opened["validation"].read_whole().features["a"].cat.categories.tolist() == list("wxyz")
    for name, channel in channels.items():
        check_alike(channel, opened[name])


def test_another_category_is_named_on_resume(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    FRAME.assign(a=list("xyzw") * 10).to_csv(file, index=False)
    _, about = recorded(Channel.of(str(file), categorical="a"), tmp_path)
    FRAME.assign(a=list("xyzv") * 10).to_csv(file, index=False)
    with refuses(DataError, field=("channel", "train", "categories"), value="'a'"):
        open_inputs(about)


DAMAGES = {"gone": "Completed", "cut short": "damaged", "a pickle": "damaged"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_copy_that_is_not_whole_is_refused_and_never_executed(damage: str, tmp_path: Path) -> None:
    _, about = recorded(FRAME, tmp_path)
    copy = Path(about["train"]["open"]["copy"])
    if damage == "gone":
        copy.unlink()
    elif damage == "cut short":
        copy.write_bytes(copy.read_bytes()[:-100])
    else:
        np.savez(copy, features=np.array([{"a": 1}], dtype=object), labels=np.zeros(1))
    named = ("channel", "train", DAMAGES[damage])
    with refuses(DataError, field=named, value=str(copy), remedy="resume(inputs=...)"):
        open_inputs(about)


def test_what_is_too_large_is_not_copied_unasked(tmp_path: Path) -> None:
    _, about = recorded(FRAME, tmp_path, most_bytes=ROWS.nbytes - 1)
    assert not (tmp_path / "job").exists()
    with refuses(DataError, field=("channel", "train", "copy"), remedy="resume(inputs=...)"):
        open_inputs(about)
    channels, about = recorded(FRAME, tmp_path, most_bytes=math.inf)
    check_alike(channels["train"], open_inputs(about)["train"])


def test_copies_go_and_nothing_else(tmp_path: Path) -> None:
    recorded(FRAME, tmp_path)
    (tmp_path / "job" / "a-trial").mkdir()
    remove_copies(str(tmp_path / "job"))
    remove_copies(str(tmp_path / "job"))
    assert storage.names(str(tmp_path / "job")) == ["a-trial"]


@pytest.mark.parametrize("distribution", ["FullyReplicated", "ShardedByS3Key"])
def test_a_folder_is_opened_again_and_refused_once_a_file_of_it_changed(tmp_path: Path, distribution: Any) -> None:
    images = tmp_path / "my images"
    (images / "cats").mkdir(parents=True)
    for name in ("a.txt", "cats/ü.txt"):
        (images / name).write_text(name)
    channels, about = recorded(Folder(images, distribution), tmp_path)
    assert about["train"]["count"] == 2
    again = open_inputs(about)["train"]
    assert again.describe() == channels["train"].describe()
    (images / "cats" / "b.txt").write_text("b")
    with refuses(DataError, field=("channel", "train", "files", "3", "2"), value="cats/b.txt"):
        open_inputs(about)
    (images / "cats" / "b.txt").unlink()
    check_same(about, open_inputs(about))
    images.rename(tmp_path / "moved")
    with refuses(DataError, field="train", value="my images", remedy="resume(inputs=...)"):
        open_inputs(about)
    check_same(about, open_channels({"train": Folder(tmp_path / "moved", distribution)}))


def test_files_that_are_dealt_out_otherwise_are_told_of(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,x\n1,2\n0,3\n")
    _, about = recorded(str(path), tmp_path)
    other = Channel.of(str(path), name="train", distribution="ShardedByS3Key")
    with refuses(DataError, field=("train", "distribution"), value="ShardedByS3Key", remedy="None"):
        check_same(about, {"train": other})


@pytest.mark.parametrize("kind", ["memory", "csv"])
def test_channels_whose_columns_stand_in_another_order_are_opened_again(kind: str, tmp_path: Path) -> None:
    turned: Any = FRAME.assign(my_id=range(40))[["c", "my_id", "b", "a", "y"]]
    if kind == "csv":
        turned.to_csv(path := tmp_path / "turned.csv", index=False)
        turned = str(path)
    channels = open_channels({"train": FRAME, "validation": turned})
    about = record_inputs(channels, str(tmp_path / "job"))
    copy_inputs(about, channels)
    check_alike(channels["validation"], open_inputs(json.loads(json.dumps(about)))["validation"])
