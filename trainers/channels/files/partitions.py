"""Columns from directory names in Hive's layout: `year=2024/month=5/part.parquet`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import unquote

from trainers.channels.table import NAME_IT
from trainers.errors import DataError

_MISSING = "__HIVE_DEFAULT_PARTITION__"


Value = float | str | None
"""Of a column that a directory makes: a number, or a category, which may be missing."""


def columns_of(
    paths: Sequence[str], below: Sequence[str], own: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns, and each file's values as its path has them.

    Args:
        paths: of the files, for messages.
        below: the same from the directory on that holds all of them.
        own: columns that stand in the files, which go before those of directories.

    Raises:
        DataError: files have different columns.
    """
    pairs = [dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part.strip("=")) for path in below]
    keys = tuple(pairs[0])
    for path, values in zip(paths, pairs, strict=True):
        if tuple(values) != keys:
            raise DataError(
                f"{path} has directories for {', '.join(values) or 'no columns'}, and {paths[0]} for "
                f"{', '.join(keys) or 'none'}: all files of a channel need the same"
            )
    kept = tuple(key for key in keys if unquote(key) not in own)
    return tuple(map(unquote, kept)), [tuple(values[key] for key in kept) for values in pairs]


def values_of(path: str, keys: Sequence[str], texts: Sequence[str], categorical: Collection[int]) -> tuple[Value, ...]:
    """A file's values of the columns that its directories make.

    Args:
        path: the file's, for messages.
        keys: the columns' names.
        texts: the values as the path has them.
        categorical: which of the columns hold categories, by place.

    Raises:
        DataError: another holds what is no number.
    """
    return tuple(
        (None if text == _MISSING else unquote(text)) if at in categorical else _number(path, key, text)
        for at, (key, text) in enumerate(zip(keys, texts, strict=True))
    )


def with_values(block: Any, values: Sequence[Value]) -> Any:
    """Rows of an Arrow record batch, with columns of one value each behind the others."""
    if not values:
        return block
    import pyarrow as pa

    constant = [
        pa.repeat(pa.scalar(value, pa.float64() if isinstance(value, float) else pa.string()), block.num_rows)
        for value in values
    ]
    names = [*block.schema.names, *(f"directory {number}" for number in range(len(values)))]
    return pa.RecordBatch.from_arrays([*block.columns, *constant], names=names)


def _number(path: str, key: str, value: str) -> float:
    if value == _MISSING:
        return math.nan
    try:
        return float(unquote(value))
    except ValueError:
        raise DataError(
            f"{path}: its directory {f'{key}={value}'!r} makes a column that holds {unquote(value)!r}, which is no "
            f"number; {NAME_IT}, or rename the directories so that no '=' is in them"
        ) from None
