"""Categories of DataFrames: columns that are named categorical, and columns coded as those of another frame."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from trainers.channels.memory.numbers import is_category
from trainers.channels.rows import Categories, Coding, Roles, distinct, integer_codes, may_be_categories, unseen
from trainers.errors import DataError


def is_arrow(source: Any) -> bool:
    """Whether it is a table of pyarrow."""
    return "pyarrow" in sys.modules and isinstance(source, sys.modules["pyarrow"].Table)


def of_arrow(table: Any) -> Any:
    """A table of pyarrow as a DataFrame; dictionaries are categories, sorted unless they are said to be ordered."""
    frame = table.to_pandas(ignore_metadata=True)
    for place, dtype in enumerate(frame.dtypes):
        if is_category(dtype) and not dtype.ordered:
            frame.isetitem(place, frame.iloc[:, place].cat.set_categories(sorted(dtype.categories)))
    return frame


def coding_of(frame: Any, roles: Roles) -> dict[int, Categories]:
    """The categories of a frame's features, by their places among the features."""
    dtypes = list(frame.dtypes)  # Once: pandas gathers them from all columns each time.
    places = enumerate(roles.features(frame.shape[1]))
    return {at: Categories.of_dtype(dtypes[place]) for at, place in places if is_category(dtypes[place])}


def with_categories(frame: Any, named: Sequence[int], roles: Roles) -> Any:
    """A frame whose features at these places have categories: those that they have already, or the sorted values.

    Raises:
        DataError: a column's values are no categories.
    """
    features, frame = roles.features(frame.shape[1]), frame.copy(deep=False)
    for place in (features[at] for at in named):
        column = frame.iloc[:, place]
        if is_category(column.dtype):
            continue
        try:
            array = _as_arrow(column)
            categories = Categories.of(distinct(array))
        except DataError as error:
            raise DataError(f"column {str(frame.columns[place])!r} is categorical: {error}") from None
        frame.isetitem(place, _coded(frame, place, array, categories))
    return frame


def coded(frame: Any, coding: Coding, roles: Roles) -> Any:
    """A frame with the codes of another.

    Raises:
        DataError: a value is none of these categories.
    """
    features, frame = roles.features(frame.shape[1]), frame.copy(deep=False)
    for at, categories in coding.items():
        place = features[at]
        column = frame.iloc[:, place]
        if column.dtype != categories.pandas_dtype():
            frame.isetitem(place, _coded(frame, place, _as_arrow(column), categories))
    return frame


def _as_arrow(column: Any) -> Any:
    import pyarrow as pa

    if column.dtype.kind == "b":
        raise DataError("it holds true and false, which need no categories; leave it out of categorical")
    try:
        array = pa.Array.from_pandas(column)
    except pa.ArrowException as error:
        raise DataError(
            f"it holds what is neither all text nor all whole numbers ({error}); write it as text"
        ) from None
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    kind = array.type.value_type if isinstance(array, pa.DictionaryArray) else array.type
    if not may_be_categories(kind):
        raise DataError(f"it holds {kind} values, and categories are text or whole numbers; write it as such")
    return array


def _coded(frame: Any, place: int, array: Any, categories: Categories) -> Any:
    import pandas as pd

    name = str(frame.columns[place])
    codes = categories.codes(array, lambda at: unseen(name, array[at].as_py(), at + 1))
    return pd.Series(
        pd.Categorical.from_codes(integer_codes(codes), dtype=categories.pandas_dtype()), index=frame.index
    )
