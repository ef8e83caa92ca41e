"""Bin boundaries of columns by counting: the same ones however the rows are divided among workers and blocks.

A column's values are divided into cells, intervals of values. Workers add up how much weight each cell holds, and
divide the heavy cells again, until none holds more than a quarter of a bin, or each has one value. Weights are whole
numbers here, so that sums do not depend on their order. Each worker sorts its own values and sends nothing but counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trainers.channels import WEIGHT, Table, is_sparse, unframed

Integers = NDArray[np.int64]
Merge = Callable[[Integers], Integers]
"""Combines the arrays that all workers hand in, number by number; each worker gets the result."""
Blocks = Callable[[], Iterable[Table]]
"""Returns a worker's rows from the beginning, a block at a time."""

_FINE = 4
"""Cells a bin, at least."""
_FINER = 4
"""Parts of a cell that is just too heavy; parts differ in weight, and few of these are too heavy again."""
_LEAST_PARTS = 16
_HALVINGS, _INTERVALS_BITS = 10, 20
"""The first intervals: 1,024 a column, and less than two to the power of 20 in all, unless there are more columns."""
_PLACE_BITS, _SIGN = 32, 1 << 31
_WEIGHT_BITS = 62
"""Of the sum of all weights, so that it is an int64."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cuts:
    """Boundaries of bins: for each column its least value, the values at which a bin begins, and its greatest value.

    Args:
        width: how many columns there are.
        columns: the column of each value, rising.
        values: rising within a column; a column whose values are all missing has none.
    """

    width: int
    columns: Integers
    values: NDArray[np.float32]

    @classmethod
    def at(cls, width: int, places: Integers) -> Self:
        """Make them of places, each of which may stand more than once."""
        places = np.unique(places)
        return cls(width=width, columns=places >> _PLACE_BITS, values=_value(places))

    def of_column(self, column: int) -> NDArray[np.float32]:
        """Return the values of one column."""
        first, last = np.searchsorted(self.columns, [column, column + 1])
        return self.values[first:last]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Intervals of places that hold values, in rising order.

    A place is a value's column and, within it, the position of the value among all float32 numbers.

    Args:
        low: the lowest place that holds a value.
        high: the highest one.
        rows: how many values there are.
        weight: the sum of their weights.
    """

    low: Integers
    high: Integers
    rows: Integers
    weight: Integers

    @property
    def column(self) -> Integers:
        """The column of each cell."""
        return self.low >> _PLACE_BITS

    def __getitem__(self, which: Any) -> Cells:
        return Cells(low=self.low[which], high=self.high[which], rows=self.rows[which], weight=self.weight[which])

    def __add__(self, other: Cells) -> Cells:
        together = Cells(
            low=np.concatenate([self.low, other.low]),
            high=np.concatenate([self.high, other.high]),
            rows=np.concatenate([self.rows, other.rows]),
            weight=np.concatenate([self.weight, other.weight]),
        )
        return together[np.argsort(together.low)]


class Counter:
    """Counts values by cells, over the rows of all workers. Every worker makes one, and calls its methods alike.

    Args:
        blocks: this worker's rows.
        width: how many columns they have.
        add: adds up over the workers.
        greatest: takes the greatest over the workers.
        weights: of this worker's rows, where rows have weights.
    """

    def __init__(
        self, blocks: Blocks, width: int, add: Merge, greatest: Merge, weights: NDArray[np.float32] | None = None
    ) -> None:
        self._blocks, self._width = blocks, width
        self._add, self._greatest = add, greatest
        self._exponent: int | None = None
        """Weights times this power of two become whole numbers."""
        if weights is not None:
            rows = int(add(np.array([len(weights)], np.int64))[0])
            # The bits of numbers from 0 on are in the numbers' order.
            bits = np.array([weights.max(initial=np.float32(0)).view(np.int32)], np.int64)
            heaviest = greatest(bits).astype(np.int32).view(np.float32)
            self._exponent = _WEIGHT_BITS - rows.bit_length() - math.frexp(float(heaviest[0]))[1]

    def bounds(self) -> Cells:
        """Return one cell a column, of all that it holds; of a column without values, none."""
        return self._halved(0)

    def cells(self, max_bin: int) -> Cells:
        """Return cells that are fine enough to cut columns into so many bins."""
        cells = self._halved(max(0, min(_HALVINGS, _INTERVALS_BITS - self._width.bit_length())))
        heavy = np.zeros(self._width, np.int64)
        np.add.at(heavy, cells.column, cells.weight)
        heavy //= _FINE * max_bin
        while True:
            column = cells.column
            # A column with few values gets a bin for each of them, as XGBoost's own cuts do.
            few = np.bincount(column, minlength=self._width)[column] < 2 * max_bin
            divided = (cells.low < cells.high) & (few | (cells.weight > heavy[column]))
            if not divided.any():
                return cells
            whole = cells[divided]
            parts = whole.weight // np.maximum(heavy[whole.column] // _FINER, 1)
            parts = np.minimum(np.maximum(parts, _LEAST_PARTS), 2 * whole.rows)
            cells = cells[~divided] + self._counted(*_divided(whole, parts))

    def _halved(self, times: int) -> Cells:
        """Halve the range of all float32 numbers so often for each column, and count what lies in each interval."""
        bits = _PLACE_BITS - times
        starts = np.arange(self._width << times, dtype=np.int64) << bits
        return self._counted(starts, starts + (1 << bits))

    def _counted(self, starts: Integers, stops: Integers) -> Cells:
        """Count what lies in intervals of places; those that hold nothing are left out."""
        rows, weight, high = (np.zeros(len(starts), np.int64) for _ in range(3))
        low = np.full(len(starts), np.iinfo(np.int64).max)
        for block in self._blocks():
            for places, before in self._in_order(block, starts):
                first, last = np.searchsorted(starts, [places[0], places[-1] + 1])
                first = max(0, first - 1)  # The interval that the lowest place lies in may begin below it.
                begin, end = (np.searchsorted(places, edges[first:last]) for edges in (starts, stops))
                (held,) = np.nonzero(begin < end)
                at, begin, end = first + held, begin[held], end[held]
                rows[at] += end - begin
                weight[at] += end - begin if before is None else before[end] - before[begin]
                low[at] = np.minimum(low[at], places[begin])
                high[at] = np.maximum(high[at], places[end - 1])
        rows, weight = np.split(self._add(np.concatenate([rows, weight])), 2)
        high, low = np.split(self._greatest(np.concatenate([high, -low])), 2)
        return Cells(low=-low, high=high, rows=rows, weight=weight)[rows > 0]

    def _in_order(self, block: Table, starts: Integers) -> Iterator[tuple[Integers, Integers | None]]:
        """Yield a block's places in rising order, and the sums of weights before each.

        Columns of sparse rows come together, others apart, and those in which no interval starts are left out.
        """
        weights = self._weights(block)
        features = block.features
        if is_sparse(features):
            each = None if weights is None else np.repeat(weights, np.diff(features.indptr))
            yield from _sorted(_place(features.data, features.indices.astype(np.int64)), features.data, each)
            return
        numbers = features if isinstance(features, np.ndarray) else unframed(features)[0]
        columns = starts >> _PLACE_BITS
        for column in columns[np.append(True, columns[1:] != columns[:-1])].tolist():
            values = numbers[:, column]
            if weights is None:
                values = np.sort(values)  # Missing values come last.
                values = values[: np.searchsorted(values, np.float32(np.nan))]
                if len(values):
                    yield _place(values, column), None
            else:
                yield from _sorted(_place(values, column), values, weights)

    def _weights(self, block: Table) -> Integers | None:
        """Return the weights of rows as whole numbers; those above 0 stay above it."""
        if self._exponent is None:
            return None
        given = block.said[WEIGHT].astype(np.float64)
        return np.where(given > 0, np.maximum(np.rint(np.ldexp(given, self._exponent)), 1), 0).astype(np.int64)


def cut_columns(cells: Cells, width: int, max_bin: int) -> Cuts:
    """Cut columns into bins of equal weight, as near as cells allow.

    As in XGBoost's own cuts, a column of few values has a bin for each, and the weights of the least and the greatest
    cell do not count: where most values are 0, the others have almost all bins.

    Args:
        cells: see `Counter.cells`.
        width: how many columns there are.
        max_bin: how many bins a column has at most.
    """
    if not len(cells.low):
        return Cuts.at(width, cells.low)
    column = cells.column
    (begins,) = np.nonzero(np.append(True, column[1:] != column[:-1]))
    ends = np.append(begins[1:], len(column)) - 1
    counts = ends - begins + 1
    # Sums over all columns may be too large for int64; differences within a column are right all the same.
    before = np.cumsum(cells.weight) - cells.weight
    before -= np.repeat(before[begins] + cells.weight[begins], counts)
    between = np.repeat(np.maximum(before[ends], 1), counts)
    bins = np.clip(np.floor(before / between * max_bin), 0, max_bin - 1)
    kept = np.repeat(counts <= max_bin, counts)
    kept[1:] |= bins[1:] > bins[:-1]
    kept[begins] = True
    return Cuts.at(width, np.concatenate([cells.low[kept], cells.high[ends]]))


def within(bounds: Cells, width: int, pointers: NDArray[np.uint64], values: NDArray[np.float32]) -> Cuts:
    """Cuts out of what `xgboost.QuantileDMatrix.get_quantile_cut` returns.

    Args:
        bounds: one cell a column; see `Counter.bounds`.
        width: how many columns there are.
        pointers: where each column's values begin, and their end.
        values: of each column, a number below all its values, the cuts, and a number above all.
    """
    counts = (pointers[1:] - pointers[:-1]).astype(np.int64)
    columns = np.arange(width, dtype=np.int64).repeat(counts)
    places = _place(values, columns)
    bounds_of = np.full((2, width), -1, np.int64)
    bounds_of[:, bounds.column] = bounds.low, bounds.high
    inside = (places > bounds_of[0][columns]) & (places <= bounds_of[1][columns])
    return Cuts.at(width, np.concatenate([places[inside], bounds.low, bounds.high]))


def _divided(cells: Cells, parts: Integers) -> tuple[Integers, Integers]:
    """Divide cells into so many parts of equal length; return where they start and where they stop."""
    span = cells.high - cells.low + 1
    parts = np.minimum(np.maximum(parts, 2), span)
    of_cell = np.arange(len(parts)).repeat(parts)
    number = np.arange(len(of_cell), dtype=np.int64) - (np.cumsum(parts) - parts).repeat(parts)
    low, span, parts = cells.low[of_cell], span[of_cell], parts[of_cell]
    return low + number * span // parts, low + (number + 1) * span // parts


def _sorted(
    places: Integers, values: NDArray[np.float32], weights: Integers | None
) -> Iterator[tuple[Integers, Integers | None]]:
    kept = ~np.isnan(values) if weights is None else ~np.isnan(values) & (weights > 0)
    places = places[kept]
    if not len(places):
        return
    if weights is None:
        yield np.sort(places), None
        return
    order = _order(places)
    yield places[order], np.append(0, np.cumsum(weights[kept][order]))


def _order(places: Integers) -> Integers:
    """Return the order of places; those of one column are sorted with their positions, twice as fast as by argsort."""
    lowest = places.min()
    if int(places.max()) - int(lowest) >= 1 << _PLACE_BITS:
        return np.argsort(places)
    packed = (places - lowest - _SIGN << _PLACE_BITS) | np.arange(len(places))
    packed.sort()
    order: Integers = packed & ((1 << _PLACE_BITS) - 1)
    return order


def _place(values: NDArray[np.float32], column: Any) -> Integers:
    bits = (values + np.float32(0)).view(np.int32)  # -0 is 0.
    ordered = np.where(bits < 0, bits ^ np.int32(_SIGN - 1), bits).astype(np.int64)
    places: Integers = ordered + _SIGN + (column << _PLACE_BITS)
    return places


def _value(places: Integers) -> NDArray[np.float32]:
    ordered = ((places & ((1 << _PLACE_BITS) - 1)) - _SIGN).astype(np.int32)
    return np.where(ordered < 0, ordered ^ np.int32(_SIGN - 1), ordered).view(np.float32)
