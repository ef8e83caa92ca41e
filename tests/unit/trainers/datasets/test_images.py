"""Images of digits: what is loaded of MNIST's files and of scikit-learn's, and where MNIST comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.refusals import mentions, refuses
from tests.support.trainers.datasets.images import (
    CONTENTS,
    FILES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    WHOLE,
    idx,
    lay_out,
)
from trainers.datasets import DATASETS, check, fetch, find, load
from trainers.datasets.images import _scaled, _split
from trainers.errors import DataError


@pytest.mark.parametrize(
    ("file", "raw", "names"),
    [
        (TRAIN_IMAGES, WHOLE[TRAIN_IMAGES][:-20], ("gzip",)),
        (TRAIN_IMAGES, WHOLE[TRAIN_LABELS], ("labels",)),
        (TEST_LABELS, WHOLE[TEST_IMAGES], ("images",)),
        (TRAIN_LABELS, WHOLE[TEST_LABELS], (TRAIN_IMAGES, "60,000", "10,000")),
        (TEST_LABELS, idx((10_000,), bytes([3] * 9_999 + [10])), ("label", "10", "9999", "0", "9")),
        (TEST_IMAGES, idx((10_000, 14, 56)), ("10,000", "14x56", "28x28")),
    ],
)
def test_files_that_are_not_what_they_should_be_are_refused(
    nowhere: Path, tmp_path: Path, file: str, raw: bytes, names: tuple[str, ...]
) -> None:
    folder = lay_out(tmp_path / "mnist", {**WHOLE, file: raw})
    with refuses(DataError, field=(file, *names), remedy=("fetch", "mnist")):
        load("mnist", data_dir=folder)


def test_train_and_test_files_that_were_exchanged_are_refused(nowhere: Path, tmp_path: Path) -> None:
    exchanged = {TRAIN_IMAGES: TEST_IMAGES, TRAIN_LABELS: TEST_LABELS}
    folder = lay_out(tmp_path, {**WHOLE, **{name: WHOLE[other] for name, other in exchanged.items()}})
    with refuses(DataError, field=TRAIN_IMAGES, value="10,000", remedy=("60,000", "28x28")):
        load("mnist", data_dir=folder)


def test_the_digits_need_no_download(nowhere: Path) -> None:
    data = load("digits")
    assert [part[0].shape for part in (data.train, data.validation, data.test)] == [(1_200, 64), (297, 64), (300, 64)]
    assert max(part[0].max() for part in (data.train, data.validation, data.test)) == 1
    everything = np.concatenate([data.train[0], data.validation[0], data.test[0]])
    assert len(np.unique(everything, axis=0)) == 1_797
    assert (find("digits"), check("digits")) == (None, [])
    assert not nowhere.exists()


def test_the_draw_is_seeded_and_keeps_the_order() -> None:
    images, labels = np.arange(40, dtype=np.uint8).reshape(20, 2), np.arange(20, dtype=np.uint8)
    (left, left_labels), (drawn, drawn_labels) = _split(images, labels, 5, seed=1)
    assert len(drawn_labels) == 5
    assert sorted([*left_labels, *drawn_labels]) == list(range(20))
    assert list(left_labels) == sorted(left_labels)
    np.testing.assert_array_equal(left[:, 0], 2 * left_labels)
    np.testing.assert_array_equal(_split(images, labels, 5, seed=1)[1][0], drawn)
    assert any(not np.array_equal(_split(images, labels, 5, seed)[1][0], drawn) for seed in range(2, 6))


def test_pixels_are_divided_by_the_brightest_and_rows_repeated() -> None:
    images, labels = np.array([[0, 51], [255, 102]], np.uint8), np.array([3, 9], np.uint8)
    scaled, as_numbers = _scaled((images, labels), 255, 1)
    np.testing.assert_array_equal(scaled, np.array([[0, 0.2], [1, 0.4]], np.float32))
    np.testing.assert_array_equal(as_numbers, np.array([3, 9], np.float32))
    twice, labels_twice = _scaled((images, labels), 255, 2)
    np.testing.assert_array_equal(twice, np.concatenate([scaled, scaled]))
    assert list(labels_twice) == [3, 9, 3, 9]


@pytest.fixture
def serve(home_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A home of MNIST's files, some of them missing or others; its URL is returned."""
    sums = {name: hashlib.sha256(raw).hexdigest() for name, raw in CONTENTS.items()}
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], files=sums))
    return lambda files: f"{home_of(files)}/mnist/"


def publish(monkeypatch: pytest.MonkeyPatch, first: str, second: str) -> None:
    """Points MNIST at two homes."""
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], url=first, mirrors=(second,)))


def left_behind(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_what_the_first_home_lacks_or_has_changed_comes_from_the_second(
    nowhere: Path, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {name: raw for name, raw in CONTENTS.items() if name != TEST_LABELS} | {TRAIN_IMAGES: b"changed"}
    publish(monkeypatch, serve(first), serve(CONTENTS))
    folder = fetch("mnist")
    assert folder == nowhere / "mnist" == find("mnist")
    assert {name: (folder / name).read_bytes() for name in left_behind(folder)} == CONTENTS
    assert check("mnist") == [(folder / name, True, "") for name in FILES]

    # What is there is not fetched again, and what was changed is not taken for it.
    publish(monkeypatch, "http://127.0.0.1:9/", "http://127.0.0.1:9/")
    assert fetch("mnist") == folder
    (folder / TEST_LABELS).unlink()
    assert find("mnist") is None
    assert [ok for _, ok, _ in check("mnist")] == [True, True, True, False]
    with refuses(DataError, field=f"http://127.0.0.1:9/{TEST_LABELS}", value="ConnectionError", remedy="--data-dir"):
        fetch("mnist")
    publish(monkeypatch, serve({TEST_LABELS: CONTENTS[TEST_LABELS]}), "http://127.0.0.1:9/")
    assert fetch("mnist") == folder
    (folder / TEST_LABELS).write_bytes(b"changed")
    with refuses(DataError, field=f"{folder}/{TEST_LABELS}", value="SHA-256", remedy=("fetch", "mnist")):
        fetch("mnist")


def test_where_both_homes_fail_both_are_named_and_nothing_is_left(
    nowhere: Path, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = serve({**CONTENTS, TRAIN_IMAGES: CONTENTS[TRAIN_IMAGES][:-1]})
    publish(monkeypatch, "http://127.0.0.1:9/mnist/", changed)
    homes = tuple(f"{home}{TRAIN_IMAGES}" for home in ("http://127.0.0.1:9/mnist/", changed))
    with refuses(
        DataError,
        field=homes,
        remedy=("ConnectionError", "SHA-256", "--data-dir", "WARMBAND_DATA", "'digits'"),
    ):
        load("mnist")
    assert left_behind(nowhere) == set()
    [(path, ok, problem), *_] = check("mnist")
    assert (path, ok) == (nowhere / "mnist" / TRAIN_IMAGES, False)
    mentions(problem, TRAIN_IMAGES, "--data-dir", "WARMBAND_DATA", "'digits'")
