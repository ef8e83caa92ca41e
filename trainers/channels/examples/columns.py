"""Rows of Parquet files as dicts of tensors, text and bytes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainers.channels.examples.located import located
from trainers.channels.examples.parquet import Heads, InParquet, heads, place_of, read_columns
from trainers.checking import did_you_mean
from trainers.errors import DataError

_WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
"""Types that PyTorch computes little with, and those that hold their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns(InParquet):
    """Columns of Parquet files; see `Form`."""

    names: tuple[str, ...]
    ragged: tuple[str, ...]

    @property
    def described(self) -> dict[str, Any]:
        """See `Form`."""
        return {"columns": list(self.names)}

    def opened(self) -> Rows:
        """See `Form`."""
        return Rows(self)


class Rows:
    """A dataset of `Columns`: all of them are in memory, as arrays."""

    def __init__(self, form: Columns) -> None:
        self._form = form
        self._cells = {
            name: _cells(name, column, form.heads) for name, column in read_columns(form.heads, form.names).items()
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self._form,)

    def __len__(self) -> int:
        return self._form.rows

    def __getitem__(self, row: int) -> dict[str, Any]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)  # Where lists of various lengths begin and end stands at rows and behind them.
        return {name: cell(row) for name, cell in self._cells.items()}


def opened(arguments: Mapping[str, Any]) -> Columns:
    """What `Examples.columns` stands for.

    Raises:
        DataError: there are no files, no such column, or one is of a type that is no tensor.
    """
    found = heads(located(arguments["paths"], (".parquet",), "a Parquet file"))
    where, known = found.located.name(found.located.files[0]), found.schema.names
    names = tuple(known if arguments["only"] is None else arguments["only"])
    for name in names:
        if name not in known:
            raise DataError(f"{where} has no column {name!r}{did_you_mean(name, known)}; it has {', '.join(known)}")
        kind = found.schema.field(name).type
        if _shape(kind) is None and not _is_text(kind) and not _is_ragged(kind):
            raise DataError(
                f"column {name!r} of {where} is {kind}, which makes no tensor; write it as numbers, lists of numbers, "
                "text or bytes, or leave it out with only=[...]"
            )
    ragged = tuple(name for name in names if _is_ragged(found.schema.field(name).type))
    return Columns(heads=found, names=names, ragged=ragged)


# ---- types


def _shape(kind: Any) -> tuple[int, ...] | None:
    """The shape of each value of a type; None where it is no number, nor a list of numbers of a fixed size."""
    import pyarrow as pa

    if isinstance(kind, pa.FixedShapeTensorType):
        return tuple(kind.shape)
    if pa.types.is_dictionary(kind):
        return _shape(kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        inner = _shape(kind.value_type)
        return None if inner is None else (kind.list_size, *inner)
    return () if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) else None


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    of = pa.types
    return bool(of.is_string(kind) or of.is_large_string(kind) or of.is_binary(kind) or of.is_large_binary(kind))


def _is_ragged(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        (pa.types.is_list(kind) or pa.types.is_large_list(kind))
        and (_shape(kind.value_type) is not None or _is_text(kind.value_type))
    )


# ---- values


def _cells(name: str, column: Any, found: Heads) -> Callable[[int], Any]:
    """What gives the value of a row."""
    kind, where = column.type, found.located.name(found.located.files[0])
    if _is_text(kind):
        return lambda row: column[row].as_py()
    if not _is_ragged(kind):
        values = _tensor(
            column, name, where, lambda at: _missing(name, found, at // max(1, int(np.prod(_shape(kind) or (1,)))))
        )
        return lambda row: values[row]
    if _is_text(kind.value_type):
        return lambda row: column[row].as_py()
    starts = column.offsets.to_numpy()
    inner = _tensor(
        column.values, name, where, lambda at: _missing(name, found, int(np.searchsorted(starts, at, side="right")) - 1)
    )
    return lambda row: inner[starts[row] : starts[row + 1]]


def _missing(name: str, found: Heads, row: int) -> DataError:
    return DataError(f"column {name!r} of {place_of(found, row)} has a list with a value missing; fill it in")


def _tensor(array: Any, name: str, where: str, missing: Callable[[int], DataError]) -> Any:
    """Numbers as a tensor of (rows, *shape)."""
    import pyarrow as pa
    import torch

    shape = _shape(array.type) or ()
    while pa.types.is_fixed_size_list(array.type) or isinstance(array.type, pa.FixedShapeTensorType):
        array = array.storage if isinstance(array.type, pa.FixedShapeTensorType) else array.flatten()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        raise missing(next(at for at, valid in enumerate(array.is_valid().to_pylist()) if not valid))
    if wider := _WIDER.get(str(array.type)):
        try:
            array = array.cast(wider)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"column {name!r} of {where} holds more than {wider} does ({error}); write it smaller"
            ) from None
    numbers = array.to_numpy(zero_copy_only=False).reshape(-1, *shape)
    with warnings.catch_warnings():
        # Arrow's memory is read-only, and batches are copies of it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(numbers)
