"""Checks of the arrays and frames that a user gives, with the columns of each role."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    Preparation,
    Problems,
    Queries,
    Roles,
    Said,
    arrow_of,
    as_said,
    check_said,
    checked_roles,
    classes_of,
    coded_features,
    column_numbers,
    distinct,
    first_text,
    gathered_roles,
    has_names,
    holds_text,
    identifies,
    is_date,
    is_identifier_name,
    is_number_type,
    is_text,
    kind_of_text,
    place_of,
    text_of,
    text_problem,
)
from trainers.channels.sparse import csr_of, is_sparse
from trainers.channels.table import DROP, ENCODE, check_finite, check_labels, count_unlabelled, unique_names
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


def from_frame(frame: Any, target: str | int | None, given: Mapping[str, Any], chosen: Chosen) -> Memory:
    """A DataFrame, with its target and other roles, and what is said of its columns; see `Roles.of`.

    Raises:
        ConfigurationError, DataError: naming all that is wrong with its columns.
    """
    columns = unique_names(frame.columns)
    problems = Problems()
    roles = gathered_roles(problems, target, given, columns, len(columns), chosen.drop)
    known = roles is not None
    frame, roles, preparation = _prepared(frame, roles or ALL_FEATURES, chosen, problems, target_known=known)
    labels: Any = None
    said: Said = {}
    with problems.gathered():
        _check_frame(frame, roles)
    with problems.gathered():
        said = _said_of({role: [frame.iloc[:, place] for place in places] for role, places in roles.said}, len(frame))
    with problems.gathered():
        if known:
            labels, preparation = _labels(frame.iloc[:, roles.target], preparation)
    problems.check()
    return Memory(
        features=frame,
        labels=labels,
        columns=columns,
        roles=roles,
        said=said,
        preparation=preparation.described(columns),
    )


def from_array(array: NDArray[Any], target: str | int | None, given: Mapping[str, Any], chosen: Chosen) -> Memory:
    """An array with two dimensions, with its target and other roles; see `Roles.of`."""
    _check_no_categories(chosen.categorical)
    _check_array(array)
    roles = Roles.of(target, given, None, array.shape[1], chosen.drop)
    _check_size(len(array), len(places := roles.features(array.shape[1])))
    labels, preparation = _labels(array[:, roles.target], Preparation(missing=chosen.missing))
    said = _said_of({role: [array[:, place] for place in of_role] for role, of_role in roles.said}, len(array))
    # Infinite bounds have a meaning; features have none.
    apart = bool(roles.said or roles.dropped)
    columns = places if apart else list(range(array.shape[1]))
    check_finite(array[:, columns] if apart else array, list(map(str, columns)))
    array = _without_sentinel(array, places, preparation)
    described = preparation.described(None)
    return Memory(features=array, labels=labels, columns=None, roles=roles, said=said, preparation=described)


def from_parts(
    features: Any,
    labels: Any,
    said: Mapping[str, Any],
    target: str | int | None,
    given: Mapping[str, Any],
    chosen: Chosen,
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
    problems, preparation, roles = Problems(), Preparation(missing=chosen.missing), ALL_FEATURES
    if is_frame(features):
        columns = unique_names(features.columns)
        dropped = {place_of("drop", one, columns, len(columns)) for one in chosen.drop}
        roles = Roles(target=None, dropped=tuple(sorted(dropped)))
        features, roles, preparation = _prepared(features, roles, chosen, problems, target_known=True)
        problems.check()
        _check_frame(features, roles)
    else:
        _check_no_categories(chosen.categorical)
        if chosen.drop:
            raise ConfigurationError(
                f"drop={list(chosen.drop)!r} of a pair (X, y) of arrays; leave the columns out of X"
            )
        if is_sparse(features):
            if chosen.missing is not None:
                raise ConfigurationError(
                    f"missing={chosen.missing:g} of sparse rows: absent entries are missing; leave it out"
                )
            features = csr_of(features)
        else:
            features = plain_array(features)
            _check_array(features)
        _check_size(*features.shape)
        check_finite(features, [str(place) for place in range(features.shape[1])])
        if not is_sparse(features):
            features = _without_sentinel(features, range(features.shape[1]), preparation)
    labels, preparation = _labels(labels, preparation)
    if len(labels) != features.shape[0]:
        raise DataError(f"X has {features.shape[0]} rows and y has {len(labels)}: give one label a row")
    parts = {role: _columns_of(values) for role, values in checked_roles(said).items()}
    return Memory(
        features=features,
        labels=labels,
        columns=columns,
        roles=roles,
        said=_said_of(parts, len(labels)),
        preparation=preparation.described(columns),
    )


# ---- preparation


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a user says of columns beside their roles; see `Channel.of`."""

    categorical: Sequence[str | int] = ()
    drop: Sequence[str | int] = ()
    keep: Sequence[str | int] = ()
    missing: float | None = None


def _prepared(
    frame: Any, roles: Roles, chosen: Chosen, problems: Problems, *, target_known: bool
) -> tuple[Any, Roles, Preparation]:
    """A frame whose features are numbers and categories, the roles without identifiers, and what was prepared."""
    columns, width = unique_names(frame.columns), frame.shape[1]
    features = roles.features(width)
    coded: list[int] = []
    with problems.gathered():
        coded = [features[at] for at in coded_features(chosen.categorical, roles, columns, width)]
    kept = {*coded}
    with problems.gathered():
        kept |= {place_of("keep", one, columns, width) for one in chosen.keep}
    found: tuple[int, ...] = ()
    if has_names(columns):
        found = tuple(place for place in features if place not in kept and _identifies(frame, place))
        found = found if len(found) < len(features) else ()  # They are all that there is to learn from.
    roles = replace(roles, dropped=tuple(sorted({*roles.dropped, *found})))
    features = roles.features(width)
    preparation = Preparation(missing=chosen.missing, identifiers=found)
    frame, dates = frame.copy(deep=False), []
    text: dict[str | int, str] = {}
    named = {*chosen.categorical, *chosen.drop}
    for place in (place for place in features if place not in coded):
        column = frame.iloc[:, place]
        if is_category(column.dtype):
            continue
        if not is_number(column.dtype):
            array = _arrow_of(column)
            if array is None or (is_text(array.type) and kind_of_text(array) is None and array.null_count < len(array)):
                if columns[place] in named:
                    continue  # Another of the named columns is wrong.
                values = column.tolist()
                at = first_text(values)
                text[columns[place]] = f"{values[at]!r} in row {at + 1}"
                continue
            if is_text(array.type) or is_date(array.type):
                dates.append(columns[place])
            elif not is_number_type(array.type):
                continue  # `_check_frame` names the type.
            frame.isetitem(place, column_numbers(array))
        if chosen.missing is not None:
            numbers = preparation.without_sentinel(frame.iloc[:, place].to_numpy(np.float64, na_value=np.nan))
            frame.isetitem(place, numbers)
    with problems.gathered():
        if text:
            raise text_problem(text, target_known)
    with problems.gathered():
        frame = with_categories(frame, [features.index(place) for place in coded], roles)
    return frame, roles, replace(preparation, dates=tuple(dates))


def _identifies(frame: Any, place: int) -> bool:
    if not is_identifier_name(str(frame.columns[place])):
        return False
    column = frame.iloc[:, place]
    array = None if is_category(column.dtype) else _arrow_of(column)
    return array is not None and identifies(array)


def _arrow_of(column: Any) -> Any:
    """A column as an Arrow array; None where its values are of several kinds, text among them."""
    try:
        return arrow_of(column)
    except DataError as error:
        if any(isinstance(value, str) for value in column.tolist()):
            return None
        raise DataError(f"column {str(column.name)!r}: {error}") from None


def _without_sentinel(array: NDArray[Any], places: Sequence[int], preparation: Preparation) -> NDArray[Any]:
    """An array with NaN in the place of the sentinel among features."""
    if preparation.missing is None:
        return array
    found: NDArray[Any] = array.astype(np.float32 if array.dtype == np.float32 else np.float64)
    for place in places:
        found[:, place] = preparation.without_sentinel(found[:, place])
    return found


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


def _labels(labels: Any, preparation: Preparation) -> tuple[NDArray[np.float32], Preparation]:
    """One float32 a row out of an array, a Series or a DataFrame with one column; text labels become classes."""
    values = labels if hasattr(labels, "iloc") else plain_array(labels)
    if len(values.shape) == 2 and values.shape[1] == 1:
        values = values.iloc[:, 0] if hasattr(values, "iloc") else values[:, 0]
    if len(values.shape) != 1:
        raise DataError(f"y has shape {values.shape}: give one label a row")
    if not is_number(values.dtype):
        array = _text_labels(values)
        if is_number_type(array.type):  # True and False of which some are missing.
            made = column_numbers(array)
        else:
            preparation = replace(preparation, classes=classes_of(distinct(array)))
            made = preparation.labels(array, lambda place: place + 1)
        coded: NDArray[np.float32] = made.astype(np.float32)
        check_labels(count_unlabelled(coded))
        return coded, preparation
    with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
        numbers: NDArray[np.float32] = series_numbers(values) if hasattr(values, "iloc") else values.astype(np.float32)
    check_labels(count_unlabelled(numbers))
    return numbers, preparation


def _text_labels(values: Any) -> Any:
    """Labels that NumPy and pandas hold as no numbers, as an Arrow array of text, or of true and false."""
    try:
        array = arrow_of(values)
    except DataError as error:
        raise DataError(f"the target: {error}") from None
    if not holds_text(array.type) and not is_number_type(array.type):
        raise DataError(f"the target holds {array.type} values; give numbers, or text, which becomes classes")
    return array if is_number_type(array.type) else text_of(array)


# ---- checks


def _check_frame(frame: Any, roles: Roles) -> None:
    places = roles.features(frame.shape[1])
    _check_size(len(frame), len(places))
    for place in places:
        dtype = frame.dtypes.iloc[place]
        if not is_number(dtype) and not is_category(dtype):
            raise DataError(
                f"column {str(frame.columns[place])!r} holds {dtype} values, no numbers; {ENCODE}, or {DROP}"
            )
        if is_number(dtype):
            with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
                numbers = series_numbers(frame.iloc[:, place])
            check_finite(numbers, [str(frame.columns[place])])


def _check_no_categories(categorical: Sequence[str | int]) -> None:
    """Refuses names of categorical columns where columns have no names.

    Raises:
        ConfigurationError: there are some.
    """
    if categorical:
        raise ConfigurationError(
            f"categorical={list(categorical)!r} of an array: categories are of columns with names; give a pandas "
            "DataFrame"
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
