"""Queries of rows that are ranked: numbered as they come, and each whole on one worker."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trainers.errors import DataError

MOST = 2**53
"""Ids stand below: of greater whole numbers, float64 holds some two as one."""


class Queries:
    """Numbers of the queries of all rows, in order from 0, as blocks of rows come one after the other.

    The rows of a query stand together, and in one file. Query number q belongs to rank `q % world_size`.
    """

    def __init__(self) -> None:
        self._numbered: set[float] = set()
        self._last = self._weight = np.nan
        self._file_ended = False

    def next_file(self) -> None:
        """The rows that come are of another file."""
        self._file_ended = True

    def numbers(
        self, ids: NDArray[np.float64], row: Callable[[int], int], weights: NDArray[np.float32] | None = None
    ) -> NDArray[np.uint32]:
        """The queries' numbers of some rows that follow those before.

        Args:
            ids: of their queries.
            row: the number, from 1, that an error gives to a row, of which it is told the place among these.
            weights: of the rows, where they have some.

        Raises:
            DataError: an id is missing or no whole number, rows of a query stand apart, or have several weights.
        """
        if not len(ids):
            return np.zeros(0, np.uint32)
        if (wrong := ~((np.abs(ids) < MOST) & (ids == np.floor(ids)))).any():
            at = int(wrong.argmax())
            if np.abs(ids[at]) >= MOST and np.isfinite(ids[at]):
                raise DataError(
                    f"row {row(at)}: qid is {ids[at]:.0f} or near it, and from 2**53 on float64 does not tell whole "
                    "numbers apart; number the queries from 0 (pandas.factorize, say)"
                )
            raise DataError(f"row {row(at)}: qid is {ids[at]:g}; give a whole number, the same for rows of one query")
        begins = np.flatnonzero(np.concatenate([[ids[0] != self._last], ids[1:] != ids[:-1]]))
        if self._file_ended and ids[0] == self._last:
            raise DataError(
                f"row {row(0)}: query {ids[0]:.0f} began in the file before; write the rows of a query into one file"
            )
        before = len(self._numbered)
        for at in begins.tolist():
            if ids[at] in self._numbered:
                raise DataError(
                    f"row {row(at)}: query {ids[at]:.0f} has rows further up, and others between; sort the rows "
                    "by query"
                )
            self._numbered.add(float(ids[at]))
        if weights is not None:
            self._check_weights(weights, begins, row)
        self._last, self._file_ended = float(ids[-1]), False
        new = np.zeros(len(ids), np.int64)
        new[begins] = 1
        numbers: NDArray[np.uint32] = (before - 1 + np.cumsum(new)).astype(np.uint32)
        return numbers

    def _check_weights(self, weights: NDArray[np.float32], begins: NDArray[np.intp], row: Callable[[int], int]) -> None:
        before = np.append(np.float32(self._weight), weights[:-1])
        self._weight = float(weights[-1])
        with np.errstate(invalid="ignore"):
            other = np.abs(weights - before) > 0  # A missing one is `check_said`'s to name.
        other[begins] = False
        if other.any():
            at = int(other.argmax())
            raise DataError(
                f"row {row(at)}: weight is {weights[at]:g}, and {before[at]:g} in the row before, of the same query; "
                "give a query one weight"
            )
