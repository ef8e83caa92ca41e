"""Cuts by counting: the same for any division of the rows, as fine as promised, and such as XGBoost takes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import xgboost
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_matrix

from tests.support.properties import examples
from trainers.channels import Table
from trainers.xgboost.matrices import Counter, Cuts, cut_columns, reference, within

FLOATS = np.finfo(np.float32)
HEAVY, LIGHT = float(np.float32(1e30)), float(FLOATS.smallest_subnormal)
NUMBERS = st.floats(width=32, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, float(FLOATS.max), float(FLOATS.min), LIGHT, 1000.25, 1000.5]
)
WEIGHTS = st.floats(0, HEAVY, width=32) | st.sampled_from([0.0, 1.0, LIGHT])


class Exchange:
    """Merges the arrays of workers that are threads."""

    def __init__(self, workers: int) -> None:
        self._barrier, self._arrays = Barrier(workers, timeout=60), [np.zeros(0, np.int64)] * workers

    def merge(self, rank: int, how: Callable[..., Any]) -> Callable[[Any], Any]:
        def merged(array: Any) -> Any:
            self._arrays[rank] = array
            self._barrier.wait()
            result = how(self._arrays, axis=0)
            self._barrier.wait()
            return result

        return merged


def table(features: Any, weights: Any = None) -> Table:
    rows = features.shape[0]
    said = {} if weights is None else {"weight": weights}
    return Table(features=features, labels=np.zeros(rows, np.float32), feature_names=None, said=said)


def counted(shards: list[list[Table]], width: int, max_bin: int) -> Cuts:
    """The cuts that workers find, each of which has the blocks of one shard."""
    exchange = Exchange(len(shards))

    def work(rank: int) -> Cuts:
        add, greatest = exchange.merge(rank, np.sum), exchange.merge(rank, np.max)
        blocks = shards[rank]
        weights = np.concatenate([block.said["weight"] for block in blocks]) if "weight" in blocks[0].said else None
        counter = Counter(lambda: blocks, width, add, greatest, weights)
        return cut_columns(counter.cells(max_bin), width, max_bin)

    if len(shards) == 1:
        return work(0)
    with ThreadPoolExecutor(len(shards)) as pool:
        first, *others = pool.map(work, range(len(shards)))
    for other in others:
        assert_equal(other, first)
    return first


def assert_equal(one: Cuts, other: Cuts) -> None:
    assert one.width == other.width
    assert np.array_equal(one.columns, other.columns)
    assert np.array_equal(one.values, other.values)


def alone(features: Any, max_bin: int, weights: Any = None) -> Cuts:
    return counted([[table(features, weights)]], features.shape[1], max_bin)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_cuts_do_not_depend_on_who_has_which_rows(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 30), st.integers(1, 3)))
    rows, width = shape
    features = data.draw(arrays.arrays(np.float32, shape, elements=NUMBERS))
    weights = data.draw(st.none() | arrays.arrays(np.float32, rows, elements=WEIGHTS))
    max_bin, ranks = data.draw(st.integers(2, 8)), data.draw(st.integers(1, 3))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rank_of, block_of, order = random.integers(0, ranks, rows), random.integers(0, 3, rows), random.permutation(rows)
    sparse = data.draw(st.booleans())

    def shard(rank: int) -> list[Table]:
        blocks = [order[(rank_of == rank)[order] & (block_of == block)[order]] for block in range(3)]
        held = csr_of(features) if sparse else features
        return [table(held[mine], None if weights is None else weights[mine]) for mine in blocks]

    whole = alone(features, max_bin, weights)
    assert_equal(counted([shard(rank) for rank in range(ranks)], width, max_bin), whole)
    for column in range(width):
        values = features[:, column][~np.isnan(features[:, column]) & ((weights is None) or weights > 0)]
        found = whole.of_column(column)
        distinct = np.unique(values)
        assert set(found.tolist()) <= set(distinct.tolist())
        assert len(found) <= max_bin + 1
        if len(distinct):
            assert (found[0], found[-1]) == (distinct[0], distinct[-1])
        if len(distinct) <= max_bin:
            assert np.array_equal(found, distinct)


def csr_of(features: Any) -> Any:
    """The same values as sparse rows: what is missing is absent, and a zero is an entry."""
    rows, columns = np.nonzero(~np.isnan(features))
    return csr_matrix((features[rows, columns], (rows, columns)), shape=features.shape)


RANDOM = np.random.default_rng(11)
ROWS = 4000
COLUMNS = {
    "normal": RANDOM.standard_normal(ROWS),
    "spread over 30 orders of magnitude": np.exp(10 * RANDOM.standard_normal(ROWS)),
    "within a millionth": 1e6 + RANDOM.random(ROWS),
    "mostly zero": np.where(RANDOM.random(ROWS) < 0.9, 0, RANDOM.random(ROWS)),
    "a peak among others": np.where(RANDOM.random(ROWS) < 0.5, 1000 + RANDOM.random(ROWS) / 8, np.arange(ROWS)),
    "mostly missing": np.where(RANDOM.random(ROWS) < 0.9, np.nan, RANDOM.standard_normal(ROWS)),
    "large whole numbers": RANDOM.integers(0, 10**9, ROWS),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_bins_hold_as_much_weight_as_those_of_xgboost(name: str) -> None:
    values = COLUMNS[name].astype(np.float32)
    made = reference(alone(values[:, None], 64), 64, 1, names=None, coding={}, sparse=False)
    ours = made.get_quantile_cut()[1]
    theirs = xgboost.QuantileDMatrix(values[:, None], max_bin=64, nthread=1).get_quantile_cut()[1]
    assert len(ours) >= len(theirs) - 2
    assert heaviest_bin(values, ours[1:-1]) <= 1.1 * heaviest_bin(values, theirs[1:-1]) + 2


def heaviest_bin(values: Any, cuts: Any) -> int:
    """Rows of the bin with the most, of bins that hold several values."""
    kept = values[~np.isnan(values)]
    bins = np.searchsorted(cuts, kept, side="right")
    several = [kept[bins == number] for number in np.unique(bins)]
    return max((len(rows) for rows in several if len(np.unique(rows)) > 1), default=0)


@pytest.mark.parametrize("max_bin", [2, 3, 16, 256])
@pytest.mark.parametrize("sparse", [False, True])
def test_xgboost_takes_cuts_as_they_are(max_bin: int, sparse: bool) -> None:
    features = np.column_stack([*COLUMNS.values(), np.full(ROWS, np.nan), np.full(ROWS, 7.0)]).astype(np.float32)
    held = csr_of(features) if sparse else features
    width = features.shape[1]
    found = alone(held, max_bin)
    made = reference(found, max_bin, 1, names=None, coding={}, sparse=sparse)
    pointers, values = xgboost.QuantileDMatrix(held, max_bin=max_bin, nthread=1, ref=made).get_quantile_cut()
    for column in range(width):
        of_column = found.of_column(column)
        taken = values[int(pointers[column]) : int(pointers[column + 1])]
        assert set(of_column[1:-1].tolist()) <= set(taken.tolist())
        assert len(taken) <= max_bin + 1


@pytest.mark.parametrize("sparse", [False, True])
def test_cuts_of_xgboost_come_back_as_they_were(sparse: bool) -> None:
    features = np.column_stack([*COLUMNS.values(), np.full(ROWS, np.nan), np.full(ROWS, 7.0)]).astype(np.float32)
    held, width = csr_of(features) if sparse else features, features.shape[1]
    own = xgboost.QuantileDMatrix(held, max_bin=32, nthread=1)
    bounds = Counter(lambda: [table(held)], width, np.asarray, np.asarray).bounds()
    made = reference(within(bounds, width, *own.get_quantile_cut()), 32, 1, names=None, coding={}, sparse=sparse)
    again = xgboost.QuantileDMatrix(held, max_bin=32, nthread=1, ref=made)
    for mine, theirs in zip(again.get_quantile_cut(), own.get_quantile_cut(), strict=True):
        assert np.array_equal(mine, theirs)


def test_columns_without_values_have_no_cuts() -> None:
    found = alone(np.full((5, 2), np.nan, np.float32), 16)
    assert (found.width, len(found.values)) == (2, 0)
    assert len(alone(np.ones((5, 1), np.float32), 16, np.zeros(5, np.float32)).values) == 0
