"""Columns in one pass over their rows: kind, missing values, least and greatest."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import is_sparse
from trainers.data_check.values import column, is_category


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """What a column holds.

    Args:
        name: its name, or its place among the features where it has none.
        kind: "categories", "0 and 1", "whole numbers", "numbers", or "nothing" where all are missing.
        missing: how many values are missing.
        least: the least number; None of categories, and where all are missing.
        greatest: the greatest.
        categories: how many there are, of categories.
        counts_rows: whether it goes up by 1 from each row to the next, within each piece that is read.
    """

    name: str
    kind: str
    missing: int
    least: float | None = None
    greatest: float | None = None
    categories: int | None = None
    counts_rows: bool = False

    @property
    def constant(self) -> bool:
        """Whether all values that are there are one."""
        return self.least is not None and self.least == self.greatest


class ColumnScan:
    """Adds up blocks of rows; `summaries` tells of all of them."""

    def __init__(self) -> None:
        self.rows = 0
        self._missing: NDArray[Any] = np.zeros(0)
        self._least: NDArray[Any] = np.zeros(0)
        self._greatest: NDArray[Any] = np.zeros(0)
        self._whole: NDArray[Any] = np.zeros(0, bool)
        self._counts: NDArray[Any] = np.zeros(0, bool)
        self._categories: dict[int, int] = {}

    def add(self, features: Any) -> None:
        """Takes a block of rows."""
        rows, width = features.shape
        if not self.rows:
            self._missing = np.zeros(width, np.int64)
            self._least, self._greatest = np.full(width, np.inf), np.full(width, -np.inf)
            self._whole = np.ones(width, bool)
            self._counts = np.full(width, not is_sparse(features))
        self.rows += rows
        if isinstance(features, np.ndarray):
            self._add_array(features)
        elif is_sparse(features):
            self._add_sparse(features)
        else:
            self._add_frame(features)

    def _add_array(self, features: NDArray[Any]) -> None:
        nan = np.isnan(features)
        self._missing += nan.sum(axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # Of a column without a value.
            self._least = np.fmin(self._least, np.fmin.reduce(features, axis=0))
            self._greatest = np.fmax(self._greatest, np.fmax.reduce(features, axis=0))
        self._whole &= ((features == np.floor(features)) | nan).all(axis=0)
        for at in np.flatnonzero(self._counts):
            self._counts[at] = _counts(features[:, at])

    def _add_sparse(self, features: Any) -> None:
        there = ~np.isnan(features.data)
        places, values = features.indices[there], features.data[there]
        self._missing += features.shape[0] - np.bincount(places, minlength=features.shape[1])
        np.minimum.at(self._least, places, values)
        np.maximum.at(self._greatest, places, values)
        self._whole[places[values != np.floor(values)]] = False

    def _add_frame(self, features: Any) -> None:
        for at in range(features.shape[1]):
            values = column(features, at)
            there = values[~np.isnan(values)]
            self._counts[at] = self._counts[at] and _counts(values)
            self._missing[at] += len(values) - len(there)
            if is_category(features, at):
                self._categories[at] = len(features.iloc[:, at].cat.categories)
            elif len(there):
                self._least[at] = min(self._least[at], there.min())
                self._greatest[at] = max(self._greatest[at], there.max())
                self._whole[at] &= bool((there == np.floor(there)).all())

    def summaries(self, names: tuple[str, ...] | None) -> tuple[ColumnSummary, ...]:
        """One a column.

        Args:
            names: of the features, where they have some.
        """
        return tuple(self._summary(at, names[at] if names else str(at)) for at in range(len(self._missing)))

    def _summary(self, at: int, name: str) -> ColumnSummary:
        missing = int(self._missing[at])
        if missing == self.rows:
            return ColumnSummary(name=name, kind="nothing", missing=missing)
        if at in self._categories:
            return ColumnSummary(name=name, kind="categories", missing=missing, categories=self._categories[at])
        least, greatest = float(self._least[at]), float(self._greatest[at])
        kind = "numbers" if not self._whole[at] else "0 and 1" if (least, greatest) == (0, 1) else "whole numbers"
        counts = bool(self._counts[at] and self._whole[at] and self.rows > 1)
        return ColumnSummary(name=name, kind=kind, missing=missing, least=least, greatest=greatest, counts_rows=counts)


def _counts(values: NDArray[Any]) -> bool:
    """Whether each value is 1 more than the one before; the ends tell of most columns that it is not so."""
    return bool(values[-1] - values[0] == len(values) - 1 and (np.diff(values) == 1).all()) if len(values) else True
