"""Examples as channels: what is in them, what is said of them, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet

from tests.support.examples import ROWS, column_table, image_folder, image_table, text_file
from tests.support.refusals import refuses, refuses_each
from trainers import Channel, ConfigurationError, DataError, Examples, ScalingConfig, ScriptTrainer, XGBoostTrainer
from trainers.channels import OpenedExamples, PlacedExamples, open_channels


def opened(examples: Examples) -> OpenedExamples:
    source = Channel.of(examples, name="train").source
    assert isinstance(source, OpenedExamples)
    return source


def dataset(examples: Examples) -> Any:
    placed = Channel.of(examples, name="train").place(1).source
    assert isinstance(placed, PlacedExamples)
    return pickle.loads(pickle.dumps(placed)).dataset()


def test_images_of_a_folder_have_its_classes(tmp_path: Path) -> None:
    rows = dataset(Examples.images(image_folder(tmp_path), size=(4, 6)))
    image, label = rows[11]
    assert len(rows) == ROWS
    assert (image.shape, image.dtype, label) == ((3, 4, 6), torch.uint8, 1)
    assert torch.all(image == 10 * 3)  # Ten of class a come first.
    assert torch.all(rows[1][0] == 20)


def test_images_without_classes_stand_alone(tmp_path: Path) -> None:
    rows = dataset(Examples.images(image_folder(tmp_path, classes=False), mode="L"))
    assert [rows[at].shape for at in (0, 1, 2)] == [(1, 8, 9), (1, 9, 9), (1, 10, 9)]


def test_images_in_parquet_files(tmp_path: Path) -> None:
    rows = dataset(Examples.images(image_table(tmp_path / "images.parquet"), size=4))
    assert [int(label) for _, label in (rows[0], rows[1])] == [1, 0]
    assert torch.all(rows[7][0] == 70)
    held = pa.table({"image": [{"bytes": (tmp_path / "of-table/03.png").read_bytes(), "path": "x"}], "label": [0.5]})
    parquet.write_table(held, tmp_path / "structs.parquet")
    image, label = dataset(Examples.images(tmp_path / "structs.parquet"))[0]
    assert torch.all(image == 30)
    assert label == torch.tensor(0.5)


@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_photos_are_turned_as_their_exif_says(tmp_path: Path, ending: str) -> None:
    from PIL import Image

    turned = Image.Exif()
    turned[0x0112] = 6  # Orientation: to be turned by 90 degrees, clockwise.
    pixels = np.zeros((8, 16), np.uint8)
    pixels[:, :8] = 255  # The left half is white, which is the upper one when turned.
    Image.fromarray(pixels).save(tmp_path / f"photo.{ending}", exif=turned)
    image = dataset(Examples.images(tmp_path, mode="L"))[0]
    assert image.shape == (1, 16, 8)
    assert image[0, :7].min() > 200
    assert image[0, 9:].max() < 50


@pytest.mark.parametrize(("name", "bits"), [("a.png", np.uint16), ("a.tif", np.uint16), ("a.pgm", np.uint16)])
def test_images_of_16_bits_keep_their_greys(tmp_path: Path, name: str, bits: Any) -> None:
    """Pillow cuts off what is above 255: all but the darkest grey would be white."""
    Image.fromarray(np.arange(0, 65_536, 1024).reshape(8, 8).astype(bits)).save(tmp_path / name)
    image = dataset(Examples.images(tmp_path, mode="L"))[0]
    assert image.flatten().tolist() == [*range(0, 256, 4)]


def test_an_image_whose_range_nobody_knows_is_an_error(tmp_path: Path) -> None:
    Image.fromarray(np.full((8, 8), 0.5, np.float32)).save(tmp_path / "a.tif")
    with refuses(DataError, field=("a.tif", "image"), value="floats", remedy=("0", "255")):
        dataset(Examples.images(tmp_path))[0]


def test_a_row_from_the_end_is_itself_in_every_column(tmp_path: Path) -> None:
    rows = dataset(Examples.columns(column_table(tmp_path / "columns.parquet")))
    assert torch.equal(rows[-1]["tokens"], torch.arange(3, dtype=torch.int32))


def test_numbers_that_no_tensor_holds_are_an_error_of_their_file(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": pa.array([2**63 + 1], pa.uint64())}), tmp_path / "ids.parquet")
    with refuses(DataError, field=("'id'", "ids.parquet"), value=2**63 + 1, remedy="int64"):
        dataset(Examples.columns(tmp_path / "ids.parquet"))


@pytest.mark.parametrize(
    ("length", "names"),
    [(False, ("{'length': False}", "OSError: no such share")), (True, ("len()", "ValueError"))],
)
def test_a_function_that_fails_is_named(length: bool, names: tuple[str, ...]) -> None:
    with refuses(
        ConfigurationError, field=("'train'", "Examples.named", "tests.support.examples:breaks"), remedy=names
    ):
        opened(Examples.named("tests.support.examples:breaks", length=length))


def kinds_table(path: Path, kinds: list[str], image: bytes) -> Path:
    parquet.write_table(pa.table({"picture": [image] * len(kinds), "kind": kinds}), path)
    return path


@pytest.mark.parametrize("kind", ["folder", "table", "text"])
def test_classes_have_the_numbers_of_train_in_every_channel(tmp_path: Path, kind: str) -> None:
    """A validation that lacks a class has the others under their own numbers; one more class is an error."""
    picture = image_folder(tmp_path / "of", classes=False) / "00.png"

    def examples(name: str, classes: list[str]) -> Examples:
        if kind == "table":
            return Examples.images(kinds_table(tmp_path / f"{name}.parquet", classes, picture.read_bytes()))
        for each in classes:
            (tmp_path / name / each).mkdir(parents=True)
            (tmp_path / name / each / picture.name).write_bytes(picture.read_bytes())
            (tmp_path / name / each / "words.txt").write_text("words")
        return Examples.images(tmp_path / name) if kind == "folder" else Examples.text(tmp_path / name, labelled=True)

    train, fewer = examples("train", ["ant", "bee", "cat"]), examples("fewer", ["bee", "cat"])
    channels = open_channels({"validation": fewer, "train": train})
    for name, numbers in (("train", [0, 1, 2]), ("validation", [1, 2])):
        rows = pickle.loads(pickle.dumps(channels[name].place(1))).source.dataset()
        assert [int(rows[at][1]) for at in range(len(rows))] == numbers
    assert channels["validation"].fingerprint() == Channel.of(fewer).fingerprint()
    with refuses(DataError, field=("'validation'", "class"), value="dog", remedy=("'train'", "ant")):
        open_channels({"train": train, "validation": examples("more", ["ant", "dog"])})


def test_columns_have_the_types_and_shapes_of_their_files(tmp_path: Path) -> None:
    row = dataset(Examples.columns(column_table(tmp_path / "columns.parquet")))[7]
    assert torch.equal(row["grid"], torch.full((2, 3), 7.0))
    assert torch.equal(row["tokens"], torch.arange(3, dtype=torch.int32))
    assert (row["words"], row["kind"]) == ("word 7", "b")
    assert [row[name].dtype for name in ("row", "short", "even")] == [torch.int64, torch.int32, torch.bool]
    assert set(dataset(Examples.columns(tmp_path / "columns.parquet", only=["row"]))[0]) == {"row"}


def test_columns_of_several_files_and_slices_of_lists(tmp_path: Path) -> None:
    for name, start in (("a", 0), ("b", 5)):
        tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(start, start + 12.0).reshape(3, 2, 2))
        parquet.write_table(
            pa.table({"t": tensors, "lists": [[[start, 1]], [], [[start, 2], [3, 4]]]}).cast(
                pa.schema([("t", tensors.type), ("lists", pa.list_(pa.list_(pa.int64(), 2)))])
            ),
            tmp_path / f"{name}.parquet",
            row_group_size=2,
        )
    rows = dataset(Examples.columns(tmp_path))
    assert torch.equal(rows[4]["t"], torch.tensor([[9.0, 10.0], [11.0, 12.0]], dtype=torch.float64))
    assert torch.equal(rows[5]["lists"], torch.tensor([[5, 2], [3, 4]]))
    assert rows[1]["lists"].shape == (0, 2)


def test_text_by_line_and_by_file(tmp_path: Path) -> None:
    lines = dataset(Examples.text(text_file(tmp_path / "one.txt")))
    assert [lines[at] for at in (0, 3, 19)] == ["line 0", "line 3", "line 19"]
    for name in ("good/x.txt", "bad/y.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"{name}\n\nthat's it")
    (tmp_path / "one.txt").unlink()
    files = dataset(Examples.text(tmp_path, each="file", labelled=True))
    assert [files[at] for at in range(2)] == [("bad/y.txt\n\nthat's it", 0), ("good/x.txt\n\nthat's it", 1)]
    labelled = dataset(Examples.text(tmp_path, labelled=True))
    assert [labelled[at] for at in range(len(labelled))][3:] == [("good/x.txt", 1), ("", 1), ("that's it", 1)]


def test_a_fingerprint_is_of_files_and_of_what_is_asked_of_them(tmp_path: Path) -> None:
    first = opened(Examples.images(image_folder(tmp_path), size=4)).fingerprint()
    assert opened(Examples.images(tmp_path, size=5)).fingerprint() != first
    (tmp_path / "a" / "00.png").rename(tmp_path / "a" / "000.png")
    assert opened(Examples.images(tmp_path, size=4)).fingerprint() != first
    [one, two] = [opened(Examples.named("tests.support.examples:Squares", rows=rows)) for rows in (5, 6)]
    assert one.fingerprint() != two.fingerprint()


def test_what_cannot_be_is_refused() -> None:
    squares, nothing = "tests.support.examples:Squares", "tests.support.examples:nothing"
    refuses_each(
        [
            (lambda: Examples.images("x", size=0), ("size", 0, "pixels")),
            (lambda: Examples.images("x", mode="rgb"), ("mode", "'rgb'", "'RGB'", "'L'")),  # type: ignore[arg-type]
            (lambda: Examples.images([]), ("paths",)),
            (lambda: Examples.text("x", each="word"), ("each", "'word'", "'line'", "'file'")),  # type: ignore[arg-type]
            (lambda: Examples.text(7), ("path", 7, "file")),  # type: ignore[arg-type]
            (lambda: Examples.columns("x", only="row"), ("only", "'row'", "names")),
            (lambda: Examples.named("somewhere"), ("Examples.named", "somewhere", "module:name")),
            (lambda: Examples.named("a:b", size=(1, 2)), ("a:b", "size", (1, 2), "lists", "dicts")),
            (lambda: Channel.of(Examples.named("no.such:thing")), ("Examples.named", "no.such:thing", "module")),
            (lambda: Channel.of(Examples.named(nothing)), (nothing, "list", "torch.utils.data.Dataset")),
            (lambda: Channel.of(Examples.named(squares, row=3)), (squares, {"row": 3}, "TypeError")),
            (lambda: Channel.of(Examples.named(squares, rows=0)), (squares, "rows")),
            (lambda: Channel.of(Examples.images("/no/such")), ("/no/such", "path")),
            (lambda: Channel.of(Examples.text("x.txt"), target="y"), ("target", "Examples")),
        ],
        (ConfigurationError, DataError),
    )


def test_errors_name_file_and_row(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "images")
    (folder / "a" / "04.png").write_bytes((folder / "a" / "06.png").read_bytes()[:40])
    (folder / "b" / "05.png").write_text("no image")
    rows = dataset(Examples.images(folder))
    with refuses(DataError, field="a/04.png", value="image"):
        rows[2]
    with refuses(DataError, field="b/05.png", value="image"):
        rows[12]
    (folder / "loose.png").write_bytes((folder / "a" / "06.png").read_bytes())
    with refuses(DataError, field="loose.png", value="class", remedy="'a'"):
        Channel.of(Examples.images(folder))

    table = parquet.read_table(image_table(tmp_path / "images.parquet"))
    broken = table.column("picture").to_pylist()
    broken[17] = b"no image"
    parquet.write_table(table.set_column(0, "picture", [broken]), tmp_path / "images.parquet")
    with refuses(DataError, field=("picture", "images.parquet", "row 18"), value="image"):
        dataset(Examples.images(tmp_path / "images.parquet"))[17]

    (tmp_path / "bad.txt").write_bytes(b"fine\nnot \xff\n")
    with refuses(DataError, field=("bad.txt", "line 2"), value="byte 4", remedy="UTF-8"):
        dataset(Examples.text(tmp_path / "bad.txt"))[1]


def test_errors_of_columns(tmp_path: Path) -> None:
    def written(name: str, **columns: Any) -> Path:
        parquet.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    first = written("a.parquet", x=[1, 2], y=[[1], [2]])
    with refuses(DataError, field=("b.parquet", "'x'", "row 3"), value="value"):
        dataset(Examples.columns([first, written("b.parquet", x=[1, 2, None], y=[[1], [2], []])]))
    with refuses(DataError, field=("c.parquet", "'y'", "row 2"), value="list"):
        dataset(Examples.columns([first, written("c.parquet", x=[1, 2], y=[[1], [2, None]])]))
    with refuses(DataError, field=("d.parquet", "'x'"), value="double", remedy=("a.parquet", "int64")):
        Channel.of(Examples.columns([first, written("d.parquet", x=[1.5], y=[[1]])]))
    with refuses(DataError, field=("e.parquet", "columns"), remedy=("a.parquet", "x, y")):
        Channel.of(Examples.columns([first, written("e.parquet", x=[1])]))
    with refuses(DataError, field=("f.parquet", "'when'"), value="date32[day]", remedy=("tensor", "only")):
        Channel.of(Examples.columns(written("f.parquet", when=pa.array([1], pa.date32()))))
    with refuses(DataError, field="a.parquet", value="'z'", remedy="x, y"):
        Channel.of(Examples.columns(first, only=["z"]))
    (tmp_path / "g.parquet").write_bytes(b"PAR1 not")
    with refuses(DataError, field="g.parquet", value="damaged"):
        Channel.of(Examples.columns(tmp_path / "g.parquet"))
    written("a.parquet", x=[1], y=[[1]])
    placed = Channel.of(Examples.columns(first)).place(1).source
    assert isinstance(placed, PlacedExamples)
    written("a.parquet", x=[1, 2, 3], y=[[1], [2], []])
    with refuses(DataError, field=("a.parquet", "rows"), value=3, remedy="1"):
        placed.dataset()


def test_trainers_of_tables_refuse_them_before_anything_starts(tmp_path: Path) -> None:
    channels = {"train": Examples.text(text_file(tmp_path / "one.txt"))}
    boosted = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0), hyperparameters={"eval_metric": "error", "num_round": 1}
    )
    with refuses(ConfigurationError, field=("'train'", "XGBoostTrainer"), value="Examples.text", remedy="TorchTrainer"):
        boosted.fit(channels)
    (tmp_path / "program.py").write_text("")
    with refuses(ConfigurationError, field=("'train'", "ScriptTrainer"), value="Examples.text", remedy="TorchTrainer"):
        ScriptTrainer(str(tmp_path / "program.py"), hyperparameters={"epochs": 1}).fit(channels)
    with refuses(ConfigurationError, field="Examples.text", value="PyTorch", remedy=(".csv", ".parquet")):
        Channel.of(channels["train"]).read_whole()


def test_fewer_examples_than_workers_are_refused() -> None:
    channel = Channel.of(Examples.named("tests.support.examples:Squares", rows=2))
    with refuses(DataError, field="rows", value=2, remedy=("3", "workers")):
        channel.look(3)
