"""IDX files: what is whole is read, and everything else is one clear error."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tests.support.properties import examples
from tests.support.refusals import refuses, refuses_each
from trainers.datasets.idx import read_images, read_labels
from trainers.errors import DataError

REMEDY = "fetch it again"
shared_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(60)
)
some_images = arrays(np.uint8, st.tuples(*[st.integers(1, 5)] * 3))
some_labels = arrays(np.uint8, st.integers(1, 9), elements=st.integers(0, 9))


def encoded(array: NDArray[np.uint8]) -> bytes:
    """An array as an IDX file has it."""
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def written(folder: Path, raw: bytes, *, packed: bool = False) -> Path:
    path = folder / "images"
    path.write_bytes(gzip.compress(raw, 1) if packed else raw)
    return path


@given(images=some_images, labels=some_labels, packed=st.booleans())
@shared_folder
def test_what_is_written_is_read(tmp_path: Path, images, labels, packed: bool) -> None:
    np.testing.assert_array_equal(read_images(written(tmp_path, encoded(images), packed=packed), REMEDY), images)
    np.testing.assert_array_equal(read_labels(written(tmp_path, encoded(labels), packed=packed), REMEDY), labels)


@given(images=some_images, data=st.data(), packed=st.booleans())
@shared_folder
def test_a_file_of_another_length_is_refused(tmp_path: Path, images, data, packed: bool) -> None:
    raw = encoded(images)
    changed = data.draw(
        st.one_of(
            st.integers(0, len(raw) - 1).map(lambda end: raw[:end]),
            st.binary(min_size=1, max_size=9).map(lambda more: raw + more),
        )
    )
    with refuses(DataError, field=f"{tmp_path}/images", remedy=REMEDY):
        read_images(written(tmp_path, changed, packed=packed), REMEDY)


@given(images=some_images, data=st.data())
@shared_folder
def test_a_gzip_stream_cut_anywhere_is_refused(tmp_path: Path, images, data) -> None:
    packed = gzip.compress(encoded(images), 1)
    with refuses(DataError, field=f"{tmp_path}/images", remedy=REMEDY):
        read_images(written(tmp_path, packed[: data.draw(st.integers(0, len(packed) - 1))]), REMEDY)


@given(images=some_images, place=st.integers(0, 15), flip=st.integers(1, 255))
@shared_folder
def test_a_changed_header_is_refused(tmp_path: Path, images, place: int, flip: int) -> None:
    raw = bytearray(encoded(images))
    raw[place] ^= flip
    with refuses(DataError, field=f"{tmp_path}/images", remedy=REMEDY):
        read_images(written(tmp_path, bytes(raw)), REMEDY)


@given(raw=st.binary(max_size=40), packed=st.booleans())
@shared_folder
def test_no_bytes_raise_anything_else(tmp_path: Path, raw: bytes, packed: bool) -> None:
    path = written(tmp_path, b"\x1f\x8b" + raw if packed else raw)
    for read in (read_images, read_labels):
        with refuses(DataError, field=str(path), remedy=REMEDY):
            read(path, REMEDY)


IMAGES = encoded(np.zeros((2, 3, 4), np.uint8))
LABELS = encoded(np.arange(10, dtype=np.uint8))


def test_an_error_names_the_file_what_was_found_and_the_remedy(tmp_path: Path) -> None:
    def reading(raw: bytes) -> Callable[[], object]:
        return lambda: read_images(written(tmp_path, raw), REMEDY)

    cases: list[tuple[bytes, tuple[str, ...]]] = [
        (b"", ("IDX",)),
        (b"<html>", ("IDX", "3c 68 74 6d")),
        (b"\0\0\x0d" + IMAGES[3:], ("32-bit", "0", "255")),
        (b"\0\0\x42" + IMAGES[3:], ("0x42", "0", "255")),
        (LABELS, ("labels", "images", "dimensions")),
        (IMAGES[:9], ("9 bytes", "16")),
        (IMAGES[:-1], ("23 bytes", "2 x 3 x 4", "24")),
        (IMAGES + b"12", ("2 bytes", "2 x 3 x 4", "24")),
        (bytes(IMAGES[:4]) + bytes(12), ("0 x 0 x 0",)),
        (gzip.compress(IMAGES, mtime=0)[:-3], ("gzip",)),
        (gzip.compress(IMAGES, mtime=0)[:-8] + bytes(8), ("CRC",)),
    ]
    refuses_each([(reading(raw), (f"{tmp_path}/images", *names, REMEDY)) for raw, names in cases], DataError)


def test_labels_are_held_to_their_classes(tmp_path: Path) -> None:
    path = written(tmp_path, LABELS)
    assert len(read_labels(path, REMEDY)) == 10
    with refuses(DataError, field=(str(path), "label"), value=7, remedy=("0", "6", REMEDY)):
        read_labels(path, REMEDY, classes=7)
    with refuses(DataError, field=str(path), value="images", remedy=("labels", REMEDY)):
        read_labels(written(tmp_path, IMAGES), REMEDY)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with refuses(DataError, field=f"{tmp_path}/nowhere", value="No such file or directory", remedy=REMEDY):
        read_images(tmp_path / "nowhere", REMEDY)
