"""Job files and data of the public programs, and how the values of a run by hand are read."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from experiments.public import data
from experiments.public_programs import (
    JOBS,
    PROGRAMS,
    STRATEGIES,
    check_out,
    csv_values,
    page_tables,
    printed_values,
    trials,
    value_of_unit,
)
from hpo.job_file import read_job
from tests.support.refusals import refuses
from trainers import WarmbandError


def test_each_program_has_a_job_file() -> None:
    assert {path.stem for path in JOBS.glob("*.yaml")} == PROGRAMS.keys()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_job_file_is_read_under_each_strategy(name: str, strategy: str) -> None:
    changed = [f"tuning.strategy={strategy}", f"tuning.max_jobs={trials(name, strategy)}"]
    read_job(JOBS / f"{name}.yaml", changed, allow_code=True)


def test_files_of_mnist_have_their_sizes_in_front(tmp_path: Path) -> None:
    data.mnist_files(tmp_path, 5, 3)
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == {
        "train-images-idx3-ubyte": 16 + 5 * 28 * 28,
        "train-labels-idx1-ubyte": 8 + 5,
        "t10k-images-idx3-ubyte": 16 + 3 * 28 * 28,
        "t10k-labels-idx1-ubyte": 8 + 3,
    }
    assert np.frombuffer((tmp_path / "train-images-idx3-ubyte").read_bytes()[:16], ">i4").tolist() == [2051, 5, 28, 28]


def test_packed_files_of_mnist_hold_the_plain_ones(tmp_path: Path) -> None:
    data.packed_mnist_files(tmp_path, 5, 3)
    plain = sorted(tmp_path.glob("*-ubyte"))
    assert len(plain) == 4
    assert all(gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()) == path.read_bytes() for path in plain)


def test_each_picture_has_a_mask_of_its_name_with_two_classes(tmp_path: Path) -> None:
    data.images_and_masks(tmp_path, 3, 2)
    for part, count in [("train", 3), ("test", 2)]:
        pictures, masks = (sorted((tmp_path / part / kind).iterdir()) for kind in ("images", "masks"))
        assert len(pictures) == count
        assert [path.name for path in pictures] == [path.name for path in masks]
        assert {Image.open(path).size for path in pictures} == {(32, 32)}
        assert all(np.unique(np.asarray(Image.open(path))).tolist() == [1, 2] for path in masks)


def test_tables_have_their_label_first(tmp_path: Path) -> None:
    data.tables(tmp_path, 5, 3)
    assert np.loadtxt(tmp_path / "train" / "rows.csv", delimiter=",").shape == (5, 5)
    assert np.loadtxt(tmp_path / "test" / "rows.csv", delimiter=",").shape == (3, 5)


def test_wines_have_a_header_and_whole_qualities(tmp_path: Path) -> None:
    data.wines(tmp_path / "wine.csv", 5)
    header, *rows = (tmp_path / "wine.csv").read_text().splitlines()
    assert header.split(";")[-1] == '"quality"'
    assert {int(row.split(";")[-1]) for row in rows} <= set(range(3, 9))
    assert len(rows) == 5


def test_pictures_lie_in_the_folder_of_their_class(tmp_path: Path) -> None:
    data.image_folders(tmp_path, 8, 8)
    pictures = sorted(tmp_path.glob("*/*/*.png"))
    assert len(pictures) == 16
    assert {(path.parts[-3], path.parts[-2]) for path in pictures} == {
        (part, name) for part in ("train", "val") for name in ("class0", "class1")
    }
    with Image.open(pictures[0]) as picture:
        assert (picture.size, picture.mode) == ((28, 28), "RGB")


def test_tokens_are_below_the_size_of_the_vocabulary(tmp_path: Path) -> None:
    data.shakespeare_tokens(tmp_path / "made", 100, 20)
    assert np.fromfile(tmp_path / "made" / "train.bin", np.uint16).max() < 61
    assert len(np.fromfile(tmp_path / "made" / "val.bin", np.uint16)) == 20


def test_values_of_a_run_by_hand_come_from_its_output() -> None:
    output = "loss 0.5\nloss 0.5\nloss 0.25\nloss 0.25\n"
    assert printed_values(r"loss (\S+)", output) == [0.5, 0.5, 0.25, 0.25]
    assert printed_values(r"(?P<value>[0-9.]+)", output) == [0.5, 0.5, 0.25, 0.25]


def test_the_value_of_a_unit_is_that_of_any_of_its_processes() -> None:
    values = [0.5, 0.6, 0.3, 0.4]
    assert value_of_unit(values, 2, 2, 0.4) == 0.4
    assert value_of_unit(values, 2, 2, 0.5) == 0.3
    assert value_of_unit(values, 2, 1, 0.5) == 0.6
    for unit, printers in [(3, 2), (5, 1), (1, 5)]:
        with refuses(WarmbandError, field=str(printers), value="4 values", remedy=str(unit)):
            value_of_unit(values, unit, printers, 0.5)


def test_values_of_a_run_by_hand_come_from_its_files(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("epoch,loss\n0,\n0,0.5\n1,0.25\n")
    assert csv_values(path, "loss") == [0.5, 0.25]


def test_sources_without_the_repository_are_refused(tmp_path: Path) -> None:
    with refuses(WarmbandError, field="--sources", value="pytorch+examples", remedy="clone"):
        check_out(PROGRAMS["mnist"], tmp_path, tmp_path / "out")


def test_the_page_says_whether_a_command_by_hand_gives_the_value_again() -> None:
    found = {
        "Hyperband": {"value": 0.5, "unit": 3, "by_hand": [0.5]},
        "Bayesian": {"value": 0.5, "unit": 3, "by_hand": [0.4, 0.6, 0.45]},
    }
    measured = {
        "repository": "a/b",
        "commit": "c",
        "entry_point": "d.py",
        "launcher": "python",
        "processes": 2,
        "lines": 20,
        "configured": "nothing",
        "found": found,
    }
    cells = page_tables({"public_program": measured})["row"].split(" | ")
    assert cells[0] == "[a/b, `d.py`](https://github.com/a/b/blob/c/d.py)"
    assert cells[-2:] == ["0.5, by hand the same", "0.5, by hand 0.4 to 0.6"]
