"""Parquet files of examples: their heads on the driver, and their columns in a worker's memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from trainers.channels.examples.located import Located
from trainers.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """What files say of themselves.

    Args:
        located: the files.
        schema: Arrow's, of all of them.
        counts: rows of each.
    """

    located: Located
    schema: Any
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Of all files together."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class InParquet:
    """What forms of Parquet files have in common; see `Form`."""

    heads: Heads

    @property
    def located(self) -> Located:
        """See `Form`."""
        return self.heads.located

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.heads.rows


def heads(located: Located) -> Heads:
    """Reads the feet of files.

    Raises:
        DataError: one is damaged, or has other columns than the first; naming it.
    """
    from pyarrow import parquet

    schemas, counts = [], []
    for file in located.files:
        try:
            with located.filesystem.open_input_file(file.path) as stream, parquet.ParquetFile(stream) as opened:
                schemas.append(opened.schema_arrow.remove_metadata())
                counts.append(opened.metadata.num_rows)
        except Exception as error:  # pyarrow's own, and what an extension type raises whose package is loaded
            raise DataError(f"{located.name(file)} is damaged or no Parquet file: {error}; write it again") from None
    first = schemas[0]
    for file, schema in zip(located.files, schemas, strict=True):
        if schema.names != first.names:
            raise DataError(
                f"{located.name(file)} has columns {', '.join(schema.names)}, and {located.name(located.files[0])} has "
                f"{', '.join(first.names)}: all files of a channel need the same"
            )
        for mine, other in zip(schema, first, strict=True):
            if mine.type != other.type:
                raise DataError(
                    f"{located.name(file)} has {mine.type} in column {mine.name!r}, and "
                    f"{located.name(located.files[0])} has {other.type}: write them alike"
                )
    if not sum(counts):
        raise DataError(f"{located.name(located.files[0])} has no rows; give files that have some")
    return Heads(located=located, schema=first, counts=tuple(counts))


def place_of(found: Heads, row: int) -> str:
    """Where a row stands, as in "rows.parquet, row 17", counted from 1."""
    ends = list(accumulate(found.counts))
    file = bisect_right(ends, row)
    return f"{found.located.name(found.located.files[file])}, row {row - (ends[file] - found.counts[file]) + 1:,}"


def read_columns(found: Heads, names: Sequence[str]) -> dict[str, Any]:
    """Columns as Arrow arrays, in one piece each; those of dictionaries are decoded.

    Raises:
        DataError: a file cannot be read, or a value is missing; naming file and row.
    """
    import pyarrow as pa
    from pyarrow import parquet

    tables = []
    for file in found.located.files:
        try:
            with found.located.filesystem.open_input_file(file.path) as stream:
                tables.append(parquet.read_table(stream, columns=list(names), partitioning=None))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{found.located.name(file)} cannot be read: {error}; write it again") from None
    for file, table, rows in zip(found.located.files, tables, found.counts, strict=True):
        if table.num_rows != rows:
            raise DataError(
                f"{found.located.name(file)} has {table.num_rows:,} rows, and had {rows:,} when the channel was "
                "opened; put it back, or begin a new job"
            )
    columns = {}
    for name in names:
        pieces = [piece for table in tables for piece in table.column(name).chunks]
        decoded = [piece.dictionary_decode() if pa.types.is_dictionary(piece.type) else piece for piece in pieces]
        column = pa.chunked_array(decoded).combine_chunks() if decoded else pa.array([])
        if isinstance(column, pa.ChunkedArray):  # More text than one array holds.
            column = pa.chunked_array(column)
        if column.null_count:
            row = next(at for at, valid in enumerate(column.is_valid().to_pylist()) if not valid)
            raise DataError(f"column {name!r} of {place_of(found, row)} has no value; fill it in, or drop the row")
        columns[name] = column
    return columns
