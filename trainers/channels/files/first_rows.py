"""The first rows of a file, and what they say of its columns before all rows are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainers.channels.files.files import MISSING, Files
from trainers.channels.files.shares import File
from trainers.channels.rows import (
    DATE,
    TRUTH,
    ZONED,
    first_text,
    holds_text,
    identifies,
    is_date,
    is_identifier_name,
    is_text,
    kind_of_text,
    text_problem,
)
from trainers.errors import DataError

_BYTES = 1 << 20
_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstRows:
    """The first rows of one file.

    Args:
        files: of the channel, whose first file it is.
        columns: Arrow arrays by the places of their columns; of Parquet files only columns of text and those whose
            names are identifiers', and of damaged files none.
    """

    files: Files
    columns: dict[int, Any]

    @classmethod
    def of(cls, files: Files) -> FirstRows:
        """Reads the beginning of the first file."""
        import pyarrow as pa

        try:
            block = _csv_block(files, files.files[0]) if files.kind == "csv" else _parquet_block(files)
        except (OSError, pa.ArrowException, StopIteration):  # Reading names the row and the reason.
            block = {}
        return cls(files=files, columns=block)

    def kinds(self) -> dict[int, str]:
        """Kinds of a CSV file's columns that are no plain numbers, as `Preparation` has them."""
        from pyarrow import types

        found = {}
        for place, column in self.columns.items() if self.files.kind == "csv" else ():
            if types.is_boolean(column.type):
                found[place] = TRUTH
            elif is_date(column.type):
                found[place] = ZONED if getattr(column.type, "tz", None) else DATE
        return found

    def is_text(self, place: int) -> bool:
        """Whether a column holds text, or a dictionary of it; ISO dates are none."""
        column = self.columns.get(place)
        if column is None or column.null_count == len(column):
            return False
        return holds_text(column.type) and not self.is_date(place)

    def is_date(self, place: int) -> bool:
        """Whether a column holds dates, or text that is ISO dates."""
        column = self.columns.get(place)
        if column is None:
            return False
        return is_date(column.type) or (is_text(column.type) and kind_of_text(column) is not None)

    def identifiers(self, candidates: Iterable[int]) -> tuple[int, ...]:
        """Columns that identify rows, by name and since each value is there once.

        All rows of small local files are compared, and the first rows of others.

        Args:
            candidates: places of columns that may be left out.
        """
        names = self.files.columns or ()
        found = [
            place
            for place in candidates
            if place in self.columns and is_identifier_name(names[place]) and identifies(self.columns[place])
        ]
        if found and self.files.is_quick:
            import pyarrow as pa

            blocks = [block for file in self.files.files for block in self.files.columns_alone(file, found, text=True)]
            found = [
                place
                for at, place in enumerate(found)
                if identifies(pa.chunked_array([block.column(at) for block in blocks]).combine_chunks())
            ]
        return tuple(found)

    def check(self, places: Sequence[int], *, target_known: bool) -> None:
        """Refuses columns of text among those that are read as numbers.

        Raises:
            DataError: naming all of them.
        """
        if text := {self._name(place): self._example(place) for place in places if self.is_text(place)}:
            raise DataError(f"{self._path}: {text_problem(text, target_known)}")

    def check_target(self, place: int) -> None:
        """Refuses a target that holds dates.

        Raises:
            DataError: naming it.
        """
        if self.is_date(place):
            raise DataError(
                f"{self._path}: the target {self._name(place)!r} holds dates; give a column of numbers or of text"
            )

    @property
    def _path(self) -> str:
        return self.files.scheme + self.files.files[0].path

    def _name(self, place: int) -> str | int:
        return self.files.columns[place] if self.files.columns else place

    def _example(self, place: int) -> str:
        """The first value that is neither a number nor a date, and where it stands."""
        values = self.columns[place].to_pylist()
        at = first_text(values)
        if self.files.kind == "parquet":
            return f"{values[at]!r} in row {at + 1}"
        return f"{values[at]!r}{self.files.where(self.files.files[0], at + 1)}"


def _csv_block(files: Files, file: File) -> dict[int, Any]:
    from pyarrow import csv

    names = [str(place) for place in range(files.own_width)]
    with files.filesystem.open_input_stream(file.path) as stream:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(
                column_names=names, skip_rows=1 if files.columns else 0, use_threads=False, block_size=_BYTES
            ),
            parse_options=csv.ParseOptions(delimiter=files.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(null_values=list(MISSING), strings_can_be_null=True),
        )
        return dict(enumerate(next(iter(reader)).columns))


def _parquet_block(files: Files) -> dict[int, Any]:
    places = list(_looked_at(files))
    if not places:
        return {}
    block = next(iter(files.columns_alone(files.files[0], places, rows=_ROWS)))
    return dict(zip(places, block.columns, strict=True))


def _looked_at(files: Files) -> Iterator[int]:
    from pyarrow import parquet

    names = files.columns or ()
    with files.filesystem.open_input_file(files.files[0].path) as stream:
        schema = parquet.read_schema(stream)
    for place, name in enumerate(names[: files.own_width]):
        kind = schema.field(name).type
        if holds_text(kind) or is_date(kind) or is_identifier_name(name):
            yield place
