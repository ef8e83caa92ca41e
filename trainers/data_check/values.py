"""Values of a block of rows, whatever holds them: an array, a frame with categories, or a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import is_sparse

Hashes = NDArray[np.uint64]

_FACTOR_1, _FACTOR_2, _COLUMN = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), 0x9E3779B97F4A7C15

_CELLS = 1 << 18
"""Values of an array that are hashed at a time."""


def is_category(features: Any, at: int) -> bool:
    """Whether a column of the features holds categories."""
    # Not of the frame's dtypes, which pandas gathers from all columns each time.
    return hasattr(features, "iloc") and hasattr(features.iloc[:, at].dtype, "categories")


def column(features: Any, at: int) -> NDArray[Any]:
    """A column as numbers, NaN where missing; of categories, their codes."""
    if is_sparse(features):
        own = features[:, [at]].tocoo()
        values = np.full(features.shape[0], np.nan, np.float32)
        values[own.row] = own.data
        return values
    if isinstance(features, np.ndarray):
        return features[:, at]
    if is_category(features, at):
        codes: NDArray[Any] = features.iloc[:, at].cat.codes.to_numpy(np.float64)
        return np.where(codes < 0, np.nan, codes)
    numbers: NDArray[Any] = features.iloc[:, at].to_numpy(np.float32)
    return numbers


def take(features: Any, rows: NDArray[np.bool_]) -> Any:
    """Some rows, as a copy of their own."""
    return features.loc[rows] if hasattr(features, "loc") else features[rows]


def hash_rows(features: Any) -> Hashes:
    """A number for each row, the same for rows of the same values in the same columns; missing ones count for nothing.

    Categories count by their values, not by their codes.
    """
    rows, width = features.shape
    hashes = np.zeros(rows, np.uint64)
    if is_sparse(features):
        entries = features.tocoo()
        np.add.at(hashes, entries.row, _mixed(_bits(entries.data) + _of_column(entries.col)))
        return hashes
    if isinstance(features, np.ndarray):
        return _hash_array(features)
    for at in range(width):
        values = _of_categories(features.iloc[:, at]) if is_category(features, at) else _bits(column(features, at))
        with np.errstate(over="ignore"):
            hashes += np.where(missing(features, at), np.uint64(0), _mixed(values + _of_column(np.array([at]))))
    return hashes


def _hash_array(features: NDArray[Any]) -> Hashes:
    """See `hash_rows`; several columns at a time, of which a copy is small."""
    rows, width = features.shape
    hashes, step = np.zeros(rows, np.uint64), max(1, _CELLS // max(1, rows))
    for start in range(0, width, step):
        block = features[:, start : start + step]
        with np.errstate(over="ignore"):
            mixed = _mixed(_bits(block) + _of_column(np.arange(start, start + block.shape[1])))
            hashes += np.where(np.isnan(block), np.uint64(0), mixed).sum(axis=1, dtype=np.uint64)
    return hashes


def hash_with(hashes: Hashes, labels: NDArray[np.float32]) -> Hashes:
    """Hashes of rows with their labels."""
    with np.errstate(over="ignore"):
        return _mixed(hashes + _mixed(_bits(labels)))


def missing(features: Any, at: int) -> NDArray[np.bool_]:
    """Which values of a column are missing."""
    absent: NDArray[np.bool_] = np.isnan(column(features, at))
    return absent


def spread(numbers: NDArray[np.uint64]) -> Hashes:
    """Numbers that look random, of others that need not: the same for the same."""
    return _mixed(numbers)


def _bits(values: NDArray[Any]) -> Hashes:
    # -0.0 and 0.0 are one value.
    return (np.asarray(values, np.float32) + np.float32(0)).view(np.uint32).astype(np.uint64)


def _of_column(at: NDArray[Any]) -> Hashes:
    with np.errstate(over="ignore"):
        return (at.astype(np.uint64) + np.uint64(1)) * np.uint64(_COLUMN)


def _of_categories(values: Any) -> Hashes:
    from pandas.util import hash_array

    of_each = hash_array(np.asarray(values.cat.categories.astype(str), dtype=object))
    hashes: Hashes = np.append(of_each, np.uint64(0))[values.cat.codes.to_numpy()]
    return hashes


def _mixed(numbers: Hashes) -> Hashes:
    """The finalizer of SplitMix64 (Steele, Lea and Flood 2014, figure 16)."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(30))) * _FACTOR_1
        numbers = (numbers ^ (numbers >> np.uint64(27))) * _FACTOR_2
    return numbers ^ (numbers >> np.uint64(31))
