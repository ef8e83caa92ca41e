"""Features of arrays and frames as float32, and what their dtypes hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.rows import Roles


def array_features(array: NDArray[Any], roles: Roles) -> NDArray[np.float32]:
    """float32 numbers of the columns that are features."""
    places = roles.features(array.shape[1])
    if len(places) == array.shape[1]:
        return np.ascontiguousarray(array, np.float32)
    features = np.empty((len(array), len(places)), np.float32)
    for at, place in enumerate(places):
        features[:, at] = array[:, place]
    return features


def frame_features(frame: Any, roles: Roles) -> Any:
    """float32 numbers, or a DataFrame of float32 numbers and categories where there are categories."""
    import pandas as pd

    columns = [frame.iloc[:, place] for place in roles.features(frame.shape[1])]
    if any(is_category(column.dtype) for column in columns):
        return pd.DataFrame(
            {
                str(column.name): column.reset_index(drop=True) if is_category(column.dtype) else series_numbers(column)
                for column in columns
            }
        )
    features = np.empty((len(frame), len(columns)), np.float32)
    for at, column in enumerate(columns):
        features[:, at] = series_numbers(column)
    return features


def series_numbers(column: Any) -> NDArray[np.float32]:
    """float32 numbers of a column of pandas."""
    with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
        numbers: NDArray[np.float32] = column.to_numpy(np.float32, na_value=np.nan)
    return numbers


def is_number(dtype: Any) -> bool:
    """Whether a NumPy or pandas dtype is whole, real, or true and false."""
    return not is_category(dtype) and getattr(dtype, "kind", "O") in "iufb"


def is_category(dtype: Any) -> bool:
    """Whether a dtype of pandas has categories."""
    return hasattr(dtype, "categories")
