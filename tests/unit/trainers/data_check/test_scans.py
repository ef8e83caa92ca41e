"""What is added up over blocks does not depend on the blocks, and is what pandas says of all rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy import sparse

from tests.support.properties import examples
from trainers.data_check.columns import ColumnScan
from trainers.data_check.duplicates import RowHashes
from trainers.data_check.giveaways import Sample
from trainers.data_check.labels import MOST_CLASSES, LabelScan
from trainers.data_check.values import hash_rows

FEW = st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan")])
ROWS = st.lists(st.tuples(FEW, FEW, st.sampled_from([0.0, 1.0, 2.0])), min_size=1, max_size=30)
CUTS = st.lists(st.integers(0, 30), max_size=4)


def blocks(rows: NDArray[Any], cuts: list[int]) -> list[NDArray[Any]]:
    ends = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    return [rows[start:stop] for start, stop in pairwise(ends)]


def array(rows: list[tuple[float, ...]]) -> NDArray[np.float32]:
    return np.array(rows, np.float32)


@given(ROWS, CUTS)
def test_columns_are_what_pandas_says_of_them(rows: list[tuple[float, ...]], cuts: list[int]) -> None:
    scan = ColumnScan()
    for block in blocks(array(rows), cuts):
        scan.add(block[:, :2])
    frame = pd.DataFrame(array(rows)[:, :2])
    for summary, (_, column) in zip(scan.summaries(("a", "b")), frame.items(), strict=True):
        assert summary.missing == column.isna().sum()
        if summary.kind == "nothing":
            assert column.isna().all()
            continue
        assert (summary.least, summary.greatest) == (column.min(), column.max())
        assert (summary.kind != "numbers") == (column.dropna() % 1 == 0).all()
        assert summary.constant == (column.nunique() == 1)


@given(ROWS, CUTS)
def test_repeated_rows_are_those_that_pandas_finds(rows: list[tuple[float, ...]], cuts: list[int]) -> None:
    hashes, frame = RowHashes(), pd.DataFrame(array(rows) + 0)  # -0.0 is 0.0.
    for block in blocks(array(rows), cuts):
        hashes.add(block[:, :2], block[:, 2])
    hashes.sort()
    assert hashes.repeated == frame.duplicated().sum()
    assert hashes.twins == frame.duplicated([0, 1], keep=False).sum()
    assert hashes.contradictions == frame.drop_duplicates().duplicated([0, 1]).sum()


@given(ROWS, ROWS)
def test_an_overlap_is_what_a_merge_finds(rows: list[tuple[float, ...]], others: list[tuple[float, ...]]) -> None:
    made = []
    for each in (rows, others):
        hashes = RowHashes()
        hashes.add(array(each)[:, :2], array(each)[:, 2])
        hashes.sort()
        made.append(hashes)
    overlap = made[0].overlap("test", made[1])
    keys = [{tuple(repr(float(value) + 0) for value in row[:size]) for row in array(others)} for size in (2, 3)]
    mine = [tuple(repr(float(value) + 0) for value in row) for row in array(rows)]
    assert overlap.rows == sum(row[:2] in keys[0] for row in mine)
    assert overlap.alike == sum(row in keys[1] for row in mine)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=50), CUTS)
def test_labels_are_what_numpy_says_of_them(labels: list[float], cuts: list[int]) -> None:
    scan, exact = LabelScan(), np.array(labels, np.float32)
    for block in blocks(exact, cuts):
        scan.add(block)
    summary = scan.summary()
    assert (summary.least, summary.greatest) == (exact.min(), exact.max())
    assert summary.mean == pytest.approx(exact.astype(np.float64).mean(), abs=1e-6, rel=1e-9)
    assert summary.deviation == pytest.approx(exact.astype(np.float64).std(), abs=1e-3, rel=1e-6)


def test_labels_are_classes_if_they_are_few_whole_numbers() -> None:
    for labels, classes in (([0, 1, 1], {0: 1, 1: 2}), ([0.5, 1], {}), (range(MOST_CLASSES + 1), {})):
        scan = LabelScan()
        for label in labels:
            scan.add(np.array([label], np.float32))
        assert scan.summary().classes == classes


@settings(max_examples=examples(20))
@given(st.integers(1, 5000), CUTS)
def test_a_sample_does_not_depend_on_blocks(rows: int, cuts: list[int]) -> None:
    labels = np.arange(rows, dtype=np.float32)
    kept = []
    for each in ([], [cut * 100 for cut in cuts]):
        sample = Sample(most=1000)
        for block in blocks(labels, each):
            sample.add(block[:, None], block)
        kept.append(sample.rows()[1])
    np.testing.assert_array_equal(*kept)
    assert min(rows, 300) <= len(kept[0]) <= 1000


def test_rows_have_one_hash_however_they_are_held() -> None:
    dense = np.array([[1, np.nan, 0], [np.nan, 2.5, -1]], np.float32)
    there = ~np.isnan(dense)
    held = sparse.csr_matrix((dense[there], np.nonzero(there)), dense.shape)
    frame = pd.DataFrame(dense)
    for other in (held, frame):
        np.testing.assert_array_equal(hash_rows(dense), hash_rows(other))
    assert len(set(hash_rows(dense[:, ::-1].copy())) | set(hash_rows(dense))) == 4  # A column has its place.


def test_categories_count_by_what_they_are() -> None:
    one = pd.DataFrame({"c": pd.Categorical(["b", None, "a"], categories=["a", "b"])})
    other = pd.DataFrame({"c": pd.Categorical(["b", None, "a"], categories=["c", "b", "a"])})
    np.testing.assert_array_equal(hash_rows(one), hash_rows(other))
    scan = ColumnScan()
    scan.add(one)
    scan.add(other)
    (summary,) = scan.summaries(("c",))
    assert (summary.kind, summary.missing, summary.categories, summary.constant) == ("categories", 2, 3, False)


def test_a_sparse_matrix_lacks_what_is_absent() -> None:
    scan = ColumnScan()
    scan.add(sparse.csr_matrix(np.array([[1.0, 0], [2.5, 0], [0, 0]], np.float32)))
    first, second = scan.summaries(None)
    assert (first.name, first.kind, first.missing, first.least, first.greatest) == ("0", "numbers", 1, 1, 2.5)
    assert (second.kind, second.missing) == ("nothing", 3)


def test_wide_rows_have_one_hash_in_an_array_and_in_a_frame() -> None:
    random = np.random.default_rng(5)
    wide = random.normal(size=(1 << 10, 600)).astype(np.float32)  # More than is hashed at a time.
    wide[random.random(wide.shape) < 0.1] = np.nan
    assert (hash_rows(wide) == hash_rows(pd.DataFrame(wide))).all()
    assert len(np.unique(hash_rows(wide))) == len(wide)
