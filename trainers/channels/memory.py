"""Rows in the driver's memory: pandas DataFrames and NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import fingerprint
from trainers.channels.rows import BASE_MARGIN, QID, WEIGHT, Queries, Roles, Said, as_said, check_said, checked_roles
from trainers.channels.table import (
    ENCODE,
    Heading,
    Shards,
    Table,
    check_filled,
    check_finite,
    check_labels,
    count_unlabelled,
    unique_names,
)
from trainers.errors import ConfigurationError, DataError

ALL_FEATURES = Roles(target=None)
"""Of columns whose labels come apart."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """An array or DataFrame, with columns of other roles among the features, or without any.

    Args:
        features: with those columns.
        labels: one a row.
        columns: names of the columns, where they have some.
        roles: where the columns are that are no features.
        said: see `Table`.
    """

    features: Any
    labels: NDArray[np.float32]
    columns: tuple[str, ...] | None
    roles: Roles = ALL_FEATURES
    said: Said = field(default_factory=dict)

    @classmethod
    def of_table(cls, table: Table) -> Memory:
        """The rows of a table."""
        return cls(features=table.features, labels=table.labels, columns=table.feature_names, said=table.said)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.labels)

    @property
    def roles_said(self) -> tuple[str, ...]:
        """See `Source`."""
        return tuple(self.said)

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""
        return {
            "kind": "numpy" if isinstance(self.features, np.ndarray) else "pandas",
            "rows": self.rows,
            "columns": list(self.columns) if self.columns else None,
            "files": [],
            **dict.fromkeys(self.said),
            **self.roles.described(self.columns),
        }

    @property
    def heading(self) -> Heading:
        """The columns beside the target."""
        places = self.roles.features(self.features.shape[1])
        return Heading(names=self.roles.feature_names(self.columns), count=len(places))

    def fingerprint(self) -> str:
        """See `Channel.fingerprint`."""
        every = fingerprint.stride(self.rows, self.features.shape[1])
        return fingerprint.of_rows(self._features(slice(0, None, every)), self.labels, self.said)

    def look(self) -> NDArray[np.float32]:
        """All labels; the rows were checked when they came."""
        return self.labels

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank."""
        mine: Any = slice(rank, None, world_size)
        if QID in self.said:
            mine = np.flatnonzero(self.said[QID] % world_size == rank)
            check_filled(len(mine), self.said)
        return Table(
            features=self._features(mine),
            labels=np.ascontiguousarray(self.labels[mine]),
            feature_names=self.roles.feature_names(self.columns),
            said={role: np.ascontiguousarray(numbers[mine]) for role, numbers in self.said.items()},
        )

    def _features(self, rows: Any) -> Any:
        if isinstance(self.features, np.ndarray):
            return _array_features(self.features[rows], self.roles)
        return _frame_features(self.features.iloc[rows], self.roles)

    def read_whole(self) -> Table:
        """All rows, in their order."""
        return self.read(0, 1)

    def place(self, num_workers: int) -> Shards | Memory:
        """One object a rank; the same rows where they are, for this process."""
        if num_workers == 0:
            return self
        import ray

        return Shards(pieces=tuple((ray.put(self.read(rank, num_workers)),) for rank in range(num_workers)))


def is_frame(source: Any) -> bool:
    """Whether it is a pandas DataFrame; whoever holds one has imported pandas, so that this need not."""
    return "pandas" in sys.modules and isinstance(source, sys.modules["pandas"].DataFrame)


def plain_array(array: Any) -> NDArray[Any]:
    """As an array of NumPy's own class: a masked value is missing, a matrix has rows and columns."""
    if hasattr(array, "toarray"):  # As all of SciPy's sparse kinds have it, which NumPy takes for one object.
        raise DataError(
            f"a {type(array).__name__} is sparse; give a dense array: with .toarray(), missing entries become 0"
        )
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64) if _is_number(array.dtype) else array, np.nan)
    try:
        return np.asarray(array)
    except (ValueError, TypeError) as error:
        raise DataError(f"the {type(array).__name__} makes no array ({error}): give rows of equal length") from None


def from_frame(frame: Any, target: str | int | None, given: Mapping[str, Any]) -> Memory:
    """A DataFrame, with its target and other roles; see `Roles.of`."""
    columns = unique_names(frame.columns)
    roles = Roles.of(target, given, columns, len(columns))
    _check_frame(frame, roles)
    said = _said_of({role: [frame.iloc[:, place] for place in places] for role, places in roles.said}, len(frame))
    labels = _labels(frame.iloc[:, roles.target])
    return Memory(features=frame, labels=labels, columns=columns, roles=roles, said=said)


def from_array(array: NDArray[Any], target: str | int | None, given: Mapping[str, Any]) -> Memory:
    """An array with two dimensions, with its target and other roles; see `Roles.of`."""
    _check_array(array)
    roles = Roles.of(target, given, None, array.shape[1])
    _check_size(len(array), len(places := roles.features(array.shape[1])))
    labels = _labels(array[:, roles.target])
    said = _said_of({role: [array[:, place] for place in of_role] for role, of_role in roles.said}, len(array))
    # Infinite bounds have a meaning; features have none.
    columns = places if roles.said else list(range(array.shape[1]))
    check_finite(array[:, columns] if roles.said else array, list(map(str, columns)))
    return Memory(features=array, labels=labels, columns=None, roles=roles, said=said)


def from_parts(
    features: Any, labels: Any, said: Mapping[str, Any], target: str | int | None, given: Mapping[str, Any]
) -> Memory:
    """X, y and what else is said of each row, each an array or of pandas."""
    if target is not None:
        raise ConfigurationError(f"target={target!r} with a pair (X, y): y is the target, so leave target out")
    if named := next(iter(checked_roles(given)), None):
        raise ConfigurationError(
            f"{named}={given[named]!r} names a column of a pair (X, y); give (X, y, {{{named!r}: values}})"
        )
    columns = None
    if is_frame(features):
        columns = unique_names(features.columns)
        _check_frame(features, ALL_FEATURES)
    else:
        features = plain_array(features)
        _check_array(features)
        _check_size(*features.shape)
        check_finite(features, [str(place) for place in range(features.shape[1])])
    labels = _labels(labels)
    if len(labels) != len(features):
        raise DataError(f"X has {len(features)} rows and y has {len(labels)}: give one label a row")
    parts = {role: _columns_of(values) for role, values in checked_roles(said).items()}
    return Memory(features=features, labels=labels, columns=columns, said=_said_of(parts, len(labels)))


# ---- numbers


def _columns_of(values: Any) -> list[Any]:
    """A column, or each one of several, as those of base margins are."""
    values = values if hasattr(values, "iloc") else plain_array(values)
    if len(values.shape) < 2:
        return [values]
    return [values.iloc[:, at] if hasattr(values, "iloc") else values[:, at] for at in range(values.shape[1])]


def _said_of(columns: Mapping[str, Sequence[Any]], rows: int) -> Said:
    """What is said of each row, out of the columns of each role.

    Raises:
        DataError: they are no numbers, are not one a row, or wrong; see `check_said`.
    """
    said: dict[str, NDArray[Any]] = {}
    for role, parts in columns.items():
        if len(parts) != 1 and (role != BASE_MARGIN or not parts):
            raise DataError(f"{role} has {len(parts)} columns; give a number for each of {rows} rows")
        for part in parts:
            if len(part.shape) != 1 or len(part) != rows or not _is_number(part.dtype):
                raise DataError(
                    f"{role} is {part.dtype} of shape {tuple(part.shape)}; give a number for each of {rows} rows"
                )
        if role != QID:
            said[role] = as_said([_series_numbers(part) if hasattr(part, "iloc") else part for part in parts])
    if QID in columns:
        ids = np.asarray(columns[QID][0], np.float64)
        said[QID] = Queries().numbers(ids, lambda place: place + 1, said.get(WEIGHT))
    check_said(said, lambda place: place + 1)
    return said


def _labels(labels: Any) -> NDArray[np.float32]:
    """One float32 a row out of an array, a Series or a DataFrame with one column."""
    values = labels if hasattr(labels, "iloc") else plain_array(labels)
    if len(values.shape) == 2 and values.shape[1] == 1:
        values = values.iloc[:, 0] if hasattr(values, "iloc") else values[:, 0]
    if len(values.shape) != 1:
        raise DataError(f"y has shape {values.shape}: give one label a row")
    if not _is_number(values.dtype):
        raise DataError(f"the target holds {values.dtype} values, no numbers; {ENCODE}")
    with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
        numbers: NDArray[np.float32] = _series_numbers(values) if hasattr(values, "iloc") else values.astype(np.float32)
    check_labels(count_unlabelled(numbers))
    return numbers


def _array_features(array: NDArray[Any], roles: Roles) -> NDArray[np.float32]:
    places = roles.features(array.shape[1])
    if len(places) == array.shape[1]:
        return np.ascontiguousarray(array, np.float32)
    features = np.empty((len(array), len(places)), np.float32)
    for at, place in enumerate(places):
        features[:, at] = array[:, place]
    return features


def _frame_features(frame: Any, roles: Roles) -> Any:
    """float32 numbers, or a DataFrame of float32 numbers and categories where there are categories."""
    import pandas as pd

    columns = [frame.iloc[:, place] for place in roles.features(frame.shape[1])]
    if any(_is_category(column.dtype) for column in columns):
        return pd.DataFrame(
            {
                str(column.name): column.reset_index(drop=True)
                if _is_category(column.dtype)
                else _series_numbers(column)
                for column in columns
            }
        )
    features = np.empty((len(frame), len(columns)), np.float32)
    for at, column in enumerate(columns):
        features[:, at] = _series_numbers(column)
    return features


def _series_numbers(column: Any) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
        numbers: NDArray[np.float32] = column.to_numpy(np.float32, na_value=np.nan)
    return numbers


# ---- checks


def _check_frame(frame: Any, roles: Roles) -> None:
    places = roles.features(frame.shape[1])
    _check_size(len(frame), len(places))
    for place in places:
        dtype = frame.dtypes.iloc[place]
        if not _is_number(dtype) and not _is_category(dtype):
            raise DataError(f"column {str(frame.columns[place])!r} holds {dtype} values, no numbers; {ENCODE}")
        if _is_number(dtype):
            with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
                numbers = _series_numbers(frame.iloc[:, place])
            check_finite(numbers, [str(frame.columns[place])])


def _check_array(array: NDArray[Any]) -> None:
    if array.ndim != 2:
        raise DataError(f"the array has shape {array.shape}: give two dimensions, one row an example")
    if not _is_number(array.dtype):
        raise DataError(f"the array holds {array.dtype} values, no numbers; {ENCODE}")


def _check_size(rows: int, features: int) -> None:
    if rows == 0:
        raise DataError("there are no rows; give at least one for each worker")
    if features < 1:
        raise DataError("there is no feature besides the target; give at least one more column")


def _is_number(dtype: Any) -> bool:
    """Whether a NumPy or pandas dtype is whole, real, or true and false."""
    return not _is_category(dtype) and getattr(dtype, "kind", "O") in "iufb"


def _is_category(dtype: Any) -> bool:
    return hasattr(dtype, "categories")
