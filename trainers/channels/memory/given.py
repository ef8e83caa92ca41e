"""Checks of the arrays and frames that a user gives, with the columns of each role."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.memory.categories import is_arrow, of_arrow, with_categories
from trainers.channels.memory.memory import ALL_FEATURES, Memory
from trainers.channels.memory.numbers import is_category, is_number, series_numbers
from trainers.channels.rows import (
    BASE_MARGIN,
    QID,
    WEIGHT,
    Queries,
    Roles,
    Said,
    as_said,
    check_said,
    checked_roles,
    coded_features,
)
from trainers.channels.sparse import csr_of, is_sparse
from trainers.channels.table import ENCODE, NAME_IT, check_finite, check_labels, count_unlabelled, unique_names
from trainers.errors import ConfigurationError, DataError


def is_frame(source: Any) -> bool:
    """Whether it is a pandas DataFrame; whoever holds one has imported pandas, so that this need not."""
    return "pandas" in sys.modules and isinstance(source, sys.modules["pandas"].DataFrame)


def plain_array(array: Any) -> NDArray[Any]:
    """As an array of NumPy's own class: a masked value is missing, a matrix has rows and columns."""
    if hasattr(array, "toarray"):  # As all of SciPy's sparse kinds have it, which NumPy takes for one object.
        raise DataError(
            f"a {type(array).__name__} is sparse, and only X of a pair (X, y) may be; give a dense array: with "
            ".toarray(), missing entries become 0"
        )
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64) if is_number(array.dtype) else array, np.nan)
    try:
        return np.asarray(array)
    except (ValueError, TypeError) as error:
        raise DataError(f"the {type(array).__name__} makes no array ({error}): give rows of equal length") from None


def from_frame(
    frame: Any, target: str | int | None, given: Mapping[str, Any], categorical: Sequence[str | int] = ()
) -> Memory:
    """A DataFrame, with its target and other roles, and what is categorical; see `Roles.of` and `coded_features`."""
    columns = unique_names(frame.columns)
    roles = Roles.of(target, given, columns, len(columns))
    frame = with_categories(frame, coded_features(categorical, roles, columns, len(columns)), roles)
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
    features: Any,
    labels: Any,
    said: Mapping[str, Any],
    target: str | int | None,
    given: Mapping[str, Any],
    categorical: Sequence[str | int] = (),
) -> Memory:
    """X, y and what else is said of each row, each an array or of pandas."""
    if target is not None:
        raise ConfigurationError(f"target={target!r} with a pair (X, y): y is the target, so leave target out")
    if named := next(iter(checked_roles(given)), None):
        raise ConfigurationError(
            f"{named}={given[named]!r} names a column of a pair (X, y); give (X, y, {{{named!r}: values}})"
        )
    columns = None
    features = of_arrow(features) if is_arrow(features) else features
    if is_frame(features):
        columns = unique_names(features.columns)
        coded = coded_features(categorical, ALL_FEATURES, columns, len(columns))
        features = with_categories(features, coded, ALL_FEATURES)
        _check_frame(features, ALL_FEATURES)
    else:
        check_no_categories(categorical)
        if is_sparse(features):
            features = csr_of(features)
        else:
            features = plain_array(features)
            _check_array(features)
        _check_size(*features.shape)
        check_finite(features, [str(place) for place in range(features.shape[1])])
    labels = _labels(labels)
    if len(labels) != features.shape[0]:
        raise DataError(f"X has {features.shape[0]} rows and y has {len(labels)}: give one label a row")
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
            if len(part.shape) != 1 or len(part) != rows or not is_number(part.dtype):
                raise DataError(
                    f"{role} is {part.dtype} of shape {tuple(part.shape)}; give a number for each of {rows} rows"
                )
        if role != QID:
            said[role] = as_said([series_numbers(part) if hasattr(part, "iloc") else part for part in parts])
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
    if not is_number(values.dtype):
        raise DataError(f"the target holds {values.dtype} values, no numbers; {ENCODE}")
    with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
        numbers: NDArray[np.float32] = series_numbers(values) if hasattr(values, "iloc") else values.astype(np.float32)
    check_labels(count_unlabelled(numbers))
    return numbers


# ---- checks


def _check_frame(frame: Any, roles: Roles) -> None:
    places = roles.features(frame.shape[1])
    _check_size(len(frame), len(places))
    for place in places:
        dtype = frame.dtypes.iloc[place]
        if not is_number(dtype) and not is_category(dtype):
            raise DataError(f"column {str(frame.columns[place])!r} holds {dtype} values, no numbers; {NAME_IT}")
        if is_number(dtype):
            with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
                numbers = series_numbers(frame.iloc[:, place])
            check_finite(numbers, [str(frame.columns[place])])


def check_no_categories(categorical: Sequence[str | int]) -> None:
    """Refuses names of categorical columns where columns have no names.

    Raises:
        ConfigurationError: there are some.
    """
    if categorical:
        raise ConfigurationError(
            f"categorical={categorical!r} of an array: categories are of columns with names; give a pandas DataFrame"
        )


def _check_array(array: NDArray[Any]) -> None:
    if array.ndim != 2:
        raise DataError(f"the array has shape {array.shape}: give two dimensions, one row an example")
    if not is_number(array.dtype):
        raise DataError(f"the array holds {array.dtype} values, no numbers; {ENCODE}")


def _check_size(rows: int, features: int) -> None:
    if rows == 0:
        raise DataError("there are no rows; give at least one for each worker")
    if features < 1:
        raise DataError("there is no feature besides the target; give at least one more column")
