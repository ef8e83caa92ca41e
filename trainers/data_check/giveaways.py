"""Columns that give the label away: those that tell nearly all of it alone, on rows that were held out.

A column that is known before the label seldom does; one that was written afterwards, or is a copy of it, does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import is_sparse
from trainers.data_check.values import column, is_category, spread, take

MOST_ROWS = 100_000
"""Rows of the sample that columns are judged by."""
MOST_CELLS = 50_000_000
"""Values of it, where there are many columns."""
OF_CLASSES, OF_NUMBERS = 0.95, 0.99
"""Share of the label that a giveaway tells: of the entropy of classes, or of the variance of the ranks of numbers."""

_BINS, _BINS_OF_CLASS, _CLASSES_BINNED = 64, 8, 8
_PRIOR_ROWS = 0.1
"""Rows that the shares of classes count as in each bin: few, so that a bin of one row tells much."""
_LEAST_PRESENT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Giveaway:
    """A column that tells the label.

    Args:
        column: its name.
        share: how much of the label it tells alone, from 0 to 1.
    """

    column: str
    share: float


class Sample:
    """A sample of rows, drawn by their numbers: the same at each run, whatever the blocks.

    Args:
        most: rows of it; fewer where they have many columns.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._seen = 0
        self._part = 1.0
        self._kept: list[tuple[NDArray[np.float64], Any, NDArray[np.float32]]] = []

    def add(self, features: Any, labels: NDArray[np.float32]) -> None:
        """Takes a block of rows."""
        numbers = np.arange(self._seen, self._seen + len(labels), dtype=np.uint64)
        self._seen += len(labels)
        drawn = spread(numbers).astype(np.float64) / 2.0**64
        self._keep(drawn, features, labels)
        held = 1 if is_sparse(features) else features.shape[1]
        most = min(self._most, max(1000, MOST_CELLS // max(1, held)))
        while sum(len(kept[0]) for kept in self._kept) > most:
            self._part /= 2
            before, self._kept = self._kept, []
            for each in before:
                self._keep(*each)

    def _keep(self, drawn: NDArray[np.float64], features: Any, labels: NDArray[np.float32]) -> None:
        mine = drawn < self._part
        if mine.any():
            self._kept.append((drawn[mine], take(features, mine), labels[mine]))

    def rows(self) -> tuple[Any, NDArray[np.float32]]:
        """Features and labels of the sample."""
        features = [kept[1] for kept in self._kept]
        labels = np.concatenate([kept[2] for kept in self._kept])
        if isinstance(features[0], np.ndarray):
            return np.concatenate(features), labels
        if is_sparse(features[0]):
            from scipy import sparse

            return sparse.vstack(features).tocsc(), labels
        import pandas as pd

        return pd.concat(features), labels


def giveaways(sample: Sample, names: tuple[str, ...] | None, *, classes: bool) -> tuple[Giveaway, ...]:
    """The columns that tell nearly all of the label alone, the most telling first.

    Args:
        sample: of the rows.
        names: of the features, where they have some.
        classes: the labels are classes.
    """
    features, labels = sample.rows()
    if len(labels) < 4 or len(np.unique(labels)) < 2:
        return ()
    told = np.unique(labels, return_inverse=True)[1] if classes else _ranks(labels)
    present = np.diff(features.indptr) if is_sparse(features) else np.full(features.shape[1], len(labels))
    found = []
    for at in np.flatnonzero(present >= _LEAST_PRESENT * len(labels)).tolist():
        values = column(features, at).astype(np.float64)
        share = told_by(values, told, classes=classes, apart=is_category(features, at))
        if share >= (OF_CLASSES if classes else OF_NUMBERS):
            found.append(Giveaway(column=names[at] if names else str(at), share=share))
    return tuple(sorted(found, key=lambda giveaway: -giveaway.share))


def told_by(values: NDArray[np.float64], label: NDArray[Any], *, classes: bool, apart: bool = False) -> float:
    """How much of a label a column tells, from 0 to 1: learnt on half the rows by bins, and measured on the rest.

    Args:
        values: of the column, NaN where missing, which is a bin of its own.
        label: the class, from 0, or the rank from 0 to 1.
        classes: which of the two.
        apart: each value is a bin, as categories are; else bins lie between quantiles of all and of each class.
    """
    learnt, held = _halves(len(values))
    mine = values[learnt]
    edges = np.unique(mine[~np.isnan(mine)]) if apart else _edges(mine, label[learnt], classes)
    bins = np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="right"))
    filled = np.flatnonzero(np.bincount(bins[learnt]))
    # What lies in no bin that was learnt, beyond an end say, counts to the one below.
    bins = np.maximum(np.searchsorted(filled, bins, side="right") - 1, 0)
    told = _entropy_told if classes else _variance_told
    return told(len(filled), bins[learnt], label[learnt], bins[held], label[held])


@lru_cache(maxsize=1)
def _halves(rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows that bins are learnt on, and those held out: not every other row, as data come in turns, too."""
    learnt = spread(np.arange(rows, dtype=np.uint64)) % np.uint64(2) == 0
    return np.flatnonzero(learnt), np.flatnonzero(~learnt)


def _edges(values: NDArray[np.float64], label: NDArray[Any], classes: bool) -> NDArray[np.float64]:
    there = ~np.isnan(values)
    values, label = values[there], label[there]
    if not len(values):
        return np.zeros(0)
    order = np.argsort(values)
    values, label = values[order], label[order]
    edges = [values[_places(len(values), _BINS)]]
    if classes:
        counts = np.bincount(label)
        rarest = [number for number in np.argsort(counts) if counts[number]][:_CLASSES_BINNED]
        of_classes = [values[label == number][_places(int(counts[number]), _BINS_OF_CLASS)] for number in rarest]
        # Above the greatest of a class begins another bin.
        edges += [*of_classes, np.nextafter([of_class[-1] for of_class in of_classes], np.inf)]
    return np.unique(np.concatenate(edges))


@lru_cache(maxsize=1024)
def _places(values: int, bins: int) -> NDArray[np.intp]:
    """Where quantiles stand among values in order, the higher neighbour each, as `np.quantile` takes them."""
    return np.ceil((values - 1) * np.linspace(0, 1, bins + 1)).astype(np.intp)


def _entropy_told(
    number: int, bins: NDArray[Any], label: NDArray[Any], held_bins: NDArray[Any], held: NDArray[Any]
) -> float:
    size = int(max(label.max(), held.max())) + 1
    counts = np.bincount(bins * size + label, minlength=number * size).reshape(number, size)
    prior = (counts.sum(axis=0) + 1 / size) / (counts.sum() + 1)
    told = (counts + _PRIOR_ROWS * prior) / (counts.sum(axis=1, keepdims=True) + _PRIOR_ROWS)
    unknown = -np.log(prior[held]).mean()
    return float(max(0.0, 1 + np.log(told[held_bins, held]).mean() / unknown)) if unknown > 0 else 0.0


def _variance_told(
    number: int, bins: NDArray[Any], label: NDArray[Any], held_bins: NDArray[Any], held: NDArray[Any]
) -> float:
    mean = float(label.mean())
    counts = np.bincount(bins, minlength=number)
    means = np.where(counts > 0, np.bincount(bins, label, minlength=number) / np.maximum(counts, 1), mean)
    unknown = float(((held - mean) ** 2).mean())
    return max(0.0, 1 - float(((held - means[held_bins]) ** 2).mean()) / unknown) if unknown > 0 else 0.0


def _ranks(labels: NDArray[np.float32]) -> NDArray[np.float64]:
    """Ranks from 0 to 1; equal labels have one."""
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(labels) / len(labels)
    return ranks
