"""The text of Python's standard library as rows: whole files in each part, the same rows each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.refusals import refuses
from trainers.datasets import text
from trainers.errors import DataError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of 150 files, each of which repeats a letter of its own; and some that stay out."""
    for number in range(150):
        (tmp_path / f"module_{number:03}.py").write_bytes(bytes([100 + number]) * 400)
    for apart in ("test", "email/tests", "site-packages/other"):
        (tmp_path / apart).mkdir(parents=True)
        (tmp_path / apart / "left_out.py").write_bytes(b"!" * 4000)
    (tmp_path / "data.txt").write_bytes(b"!" * 4000)
    return tmp_path


def bytes_of(part) -> set[int]:
    features, labels = part
    return {*features.astype(int).ravel(), *labels.astype(int)} - {0}


def test_a_file_is_in_one_part_and_what_is_no_source_of_the_library_in_none(source: Path) -> None:
    data = text.load(text.INFO, source, 3, 1)
    train, validation, test = map(bytes_of, (data.train, data.validation, data.test))
    assert train | validation | test <= {*range(100, 250)}
    assert not train & validation
    assert not (train | validation) & test
    assert len(train) > 100


def test_a_label_is_the_byte_behind_its_row_and_rows_are_float32_without_overlap(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_bytes(bytes(range(1, 256)) * 10)
    rows, labels = text._rows(bytearray((tmp_path / "counts.py").read_bytes()), 5)
    assert rows.shape == (19, text.CONTEXT)
    assert np.array_equal(labels, rows[:, -1] % 255 + 1)
    assert {int(row[0]) for row in rows} == {1 + number * text.CONTEXT % 255 for number in range(19)}


def test_rows_are_drawn_from_the_seed_alone(source: Path) -> None:
    once, again, other = (text.load(text.INFO, source, seed, 1) for seed in (3, 3, 4))
    for mine, its in zip(once.train, again.train, strict=True):
        assert np.array_equal(mine, its)
        assert mine.dtype == np.float32
    assert bytes_of(once.test) != bytes_of(other.test)
    twice = text.load(text.INFO, source, 3, 2)
    assert [len(part[1]) for part in (twice.train, twice.validation, twice.test)] == [
        2 * len(once.train[1]),
        2 * len(once.validation[1]),
        len(once.test[1]),
    ]


def test_a_python_without_its_source_is_told_so(tmp_path: Path) -> None:
    with refuses(
        DataError, field=("python-stdlib", "'train'", str(tmp_path)), value="0 bytes", remedy=("installed", "source")
    ):
        text.load(text.INFO, tmp_path, 1, 1)
