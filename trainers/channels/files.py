"""Rows in CSV or Parquet files: which files they are, what their heads say, and how a worker reads its share."""

from __future__ import annotations

import csv
import difflib
import fnmatch
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import fingerprint
from trainers.channels.dealing import deal
from trainers.channels.partitions import columns_of, with_values
from trainers.channels.table import (
    ENCODE,
    Heading,
    Table,
    arrow_rows,
    check_schema,
    feature_names,
    join,
    target_position,
    unique_names,
    without_index,
)
from trainers.errors import ConfigurationError, DataError
from trainers.storage import check_no_credentials

_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
_NO_ROWS = "holds no rows: write it again, or leave it out"
# Files of one channel that a driver reads in about a second, to find what is wrong before anything starts.
QUICK_BYTES = 32 << 20
_COUNTED_ROWS = 1_000_000
_BLOCK_BYTES = 1 << 20
_CELL_BYTES = 32
_BLOCK_CELLS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file; `weight` is what balances shards: rows of a Parquet file, bytes of a CSV file.

    Args:
        path: where it is, in its file system.
        weight: as above.
        groups: rows of each row group of a Parquet file.
        values: of the columns that the names of its directories make.
    """

    path: str
    weight: int
    groups: tuple[int, ...] = ()
    values: tuple[float, ...] = ()


_Part = tuple[File, tuple[int, ...]]
"""A file, and which of its row groups; none stand for all."""


def _by_file(parts: Iterable[tuple[File, int]]) -> list[_Part]:
    return [(file, tuple(group for _, group in own)) for file, own in groupby(parts, key=lambda part: part[0])]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Files:
    """CSV or Parquet files of one file system, alike in their columns. Make it with `open_files`."""

    kind: str
    filesystem: Any
    scheme: str
    files: tuple[File, ...]
    columns: tuple[str, ...] | None
    width: int
    delimiter: str
    position: int
    options: str = ""
    """What stands behind the question mark of their URIs."""
    given: tuple[str, ...] = ()
    """The paths that they were found by."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, which only Parquet files tell."""
        return sum(file.weight for file in self.files) if self.kind == "parquet" else None

    @property
    def heading(self) -> Heading:
        """What the columns beside the target are."""
        return Heading(names=feature_names(self.columns, self.position), count=self.width - 1)

    @property
    def _own_width(self) -> int:
        """Columns that stand in the files."""
        return self.width - len(self.files[0].values)

    def look(self) -> NDArray[np.float32] | None:
        """All labels of small local files, read whole; of larger ones nothing, after reading their beginning."""
        if self.scheme not in ("", "file://"):
            return None
        size = sum(file.weight for file in self.files) if self.kind == "csv" else self._decoded(self.files)
        if size <= QUICK_BYTES:
            return self.read_whole().labels
        next(self._blocks(self.files[0]), None)
        return None

    def fingerprint(self) -> str:
        """See `Channel.fingerprint`."""
        try:
            infos = self.filesystem.get_file_info([file.path for file in self.files])
            whole = self.scheme in ("", "file://") and sum(info.size or 0 for info in infos) <= QUICK_BYTES
            values = [file.values for file in self.files if file.values]
            read_as = (self.kind, self.columns, self.delimiter, self.position, *values)
            return fingerprint.of_files(read_as, self.filesystem, infos, whole=whole)
        except OSError as error:
            raise DataError(f"the files cannot be read: {error}; check that they are still there") from None

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "columns": list(self.columns) if self.columns else None,
            "files": [self.scheme + file.path for file in self.files],
            "target": self.columns[self.position] if self.columns else self.position,
        }

    def reopened_with(self) -> dict[str, Any]:
        """Arguments of `open_files` that open the same files again, as JSON takes them."""
        options = f"?{self.options}" if self.options else ""
        files = [f"{self.scheme}{file.path}{options}" for file in self.files]
        return {
            # Which directories make columns depends on the paths that were given.
            "paths": list(self.given) if self._own_width < self.width else files,
            "target": self.position,
            "header": None if self.kind == "parquet" else self.columns is not None,
            "delimiter": self.delimiter,
        }

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank: some files whole where that is balanced, and some rows of every other.

        Of large Parquet files it is some row groups whole, so that not every rank decodes all of them.
        """
        return join(self._shard(rank, world_size))

    def _shard(self, rank: int, world_size: int) -> Iterator[Table]:
        files = deal([file.weight for file in self.files], world_size)
        yield from self._pieces([(self.files[index], ()) for index in files.whole[rank]], 0, 1)
        left: list[_Part] = [(self.files[index], ()) for index in files.by_row]
        if sum(len(file.groups) for file, _ in left) > 1 and self._decoded(file for file, _ in left) > QUICK_BYTES:
            parts = [(file, group) for file, _ in left for group in range(len(file.groups))]
            groups = deal([file.groups[group] for file, group in parts], world_size)
            yield from self._pieces(_by_file(parts[index] for index in groups.whole[rank]), 0, 1)
            left = _by_file(parts[index] for index in groups.by_row)
        yield from self._pieces(left, rank, world_size)

    def _decoded(self, files: Iterable[File]) -> int:
        """About how many bytes Parquet files have in memory."""
        return sum(file.weight for file in files) * self.width * 8

    def read_whole(self) -> Table:
        """All rows, in their order."""
        return self.read(0, 1)

    def place(self, num_workers: int) -> Files:
        """The same files, which every worker reads for itself."""
        return self

    def _pieces(self, parts: Iterable[_Part], rank: int, world_size: int) -> Iterator[Table]:
        """The rows of one rank, out of files or row groups of them, one after the other."""
        seen = 0
        for file, groups in parts:
            before = seen
            for block in self._blocks(file, groups):
                yield arrow_rows(block, self.columns, self.position, seen=seen, rank=rank, world_size=world_size)
                seen += block.num_rows
            if seen == before and not groups:
                raise DataError(f"{self.scheme}{file.path} {_NO_ROWS}")

    def _blocks(self, file: File, groups: tuple[int, ...] = ()) -> Iterator[Any]:
        """The rows of a file, or of some row groups of a Parquet file."""
        import pyarrow as pa

        try:
            for block in self._csv_blocks(file) if self.kind == "csv" else self._parquet_blocks(file, groups):
                yield with_values(block, file.values)
        except (OSError, pa.ArrowException) as error:
            raise DataError(self._problem(file, str(error))) from None

    def _csv_blocks(self, file: File) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(position) for position in range(self._own_width)]
        with self.filesystem.open_input_stream(file.path) as stream:
            yield from arrow_csv.open_csv(
                stream,
                # One thread, so that errors name the row; as many workers read at the same time as there are cores.
                read_options=arrow_csv.ReadOptions(
                    column_names=names,
                    skip_rows=1 if self.columns else 0,
                    use_threads=False,
                    # A row has to fit into a block.
                    block_size=max(_BLOCK_BYTES, self.width * _CELL_BYTES),
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.float64()), null_values=list(_MISSING)
                ),
            )

    def _parquet_blocks(self, file: File, groups: tuple[int, ...]) -> Iterator[Any]:
        from pyarrow import parquet

        with self.filesystem.open_input_file(file.path) as stream, parquet.ParquetFile(stream) as opened:
            rows = max(1024, _BLOCK_CELLS // self.width)
            yield from opened.iter_batches(
                batch_size=rows, row_groups=list(groups) or None, columns=list((self.columns or ())[: self._own_width])
            )

    def _problem(self, file: File, message: str) -> str:
        """What pyarrow said, with the line, the column's own name and the remedy."""
        path = self.scheme + file.path
        text = re.match(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", message, re.DOTALL)
        if text and "\ufffd" in text[3]:
            return f"{path} is not UTF-8{self._where(file, text[2])}: save it as UTF-8"
        if text:
            position = int(text[1])
            column = repr(self.columns[position]) if self.columns else str(position)
            return (
                f"{path}: column {column} holds {text[3]!r}{self._where(file, text[2])}, which is no number; {ENCODE}"
            )
        cells = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
        if cells:
            line = self._where(file, cells[1])
            return (
                f"{path} has {_cells(cells[3])}{line} and {_cells(cells[2])} in its first: it is cut short or damaged; "
                f"write or copy it again, and check that the delimiter is {self.delimiter!r}"
            )
        if "Empty CSV file" in message or "Could not skip initial" in message:
            return f"{path} {_NO_ROWS}"
        return _damaged(path, message)

    def _where(self, file: File, row: str | None) -> str:
        """In which line a row is, for a message; pyarrow counts no empty lines."""
        if row is None:
            return ""
        if int(row) > _COUNTED_ROWS:
            return f" in row {row}"
        with self.filesystem.open_input_stream(file.path) as stream:
            lines = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")
            filled = (number for number, line in enumerate(lines, 1) if line.strip("\r\n"))
            return f" in line {next(islice(filled, int(row) - 1, None), row)}"


def _cells(count: str) -> str:
    return f"{count} cell" + ("s" if count != "1" else "")


def _damaged(path: str, problem: object) -> str:
    return f"{path} is cut short or damaged ({problem}); write or copy it again"


# ---- opening


def check_delimiter(delimiter: Any) -> None:
    """Refuses what pyarrow cannot split a line at."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ConfigurationError(f"delimiter={delimiter!r}: give one ASCII character, such as ',' or ';'")


def open_files(paths: Sequence[str], target: str | int | None, header: bool | None, delimiter: str) -> Files:
    """Finds the files that paths, URIs, directories and patterns stand for, and reads the head of each."""
    filesystem, scheme, infos, base = _find(paths)
    kind = _kind([info.path for info in infos])
    if kind == "parquet" and (header is not None or delimiter != ","):
        raise ConfigurationError("header and delimiter are for CSV files; leave them out for Parquet files")
    with ThreadPoolExecutor(16) as pool:
        heads = list(pool.map(lambda info: _head(filesystem, scheme, info, kind, header, delimiter), infos))
    found = [scheme + info.path for info in infos]
    _check_heads(found, heads, delimiter)
    for head in heads:
        check_schema(head.schema)
    keys, values = columns_of(found, [info.path[len(base) :] for info in infos], heads[0].names or ())
    columns = unique_names([*heads[0].names, *keys]) if heads[0].names else None
    width = heads[0].width + len(keys)
    return Files(
        kind=kind,
        filesystem=filesystem,
        scheme=scheme,
        files=tuple(
            File(path=info.path, weight=head.weight, groups=head.groups, values=own)
            for info, head, own in zip(infos, heads, values, strict=True)
        ),
        columns=columns,
        width=width,
        delimiter=delimiter,
        position=target_position(target, columns, width),
        options=paths[0].partition("?")[2] if scheme else "",
        given=tuple(path if "://" in path else os.path.abspath(os.path.expanduser(path)) for path in paths),
    )


def _find(paths: Sequence[str]) -> tuple[Any, str, list[Any], str]:
    """The file system, its scheme, what it says about each file, and the directory that all paths have in common.

    Files of a directory or a pattern are sorted by name.
    """
    for path in paths:
        check_no_credentials(path, "path")
    places = [_filesystem(path) for path in paths]
    filesystem, scheme, _ = places[0]
    found: list[Any] = []
    bases = []
    for path, (_, other, inside) in zip(paths, places, strict=True):
        if other != scheme:
            raise ConfigurationError(f"{path} and {paths[0]} are on different file systems: give files of one")
        try:
            infos, base = _expand(filesystem, inside)
        except (OSError, ValueError) as error:  # pyarrow's own are both; a name may be none that the system takes
            raise DataError(f"{path!r} cannot be reached: {error}; check the path and your access to it") from None
        if not infos:
            raise DataError(_nothing_found(path, filesystem, inside))
        found += infos
        bases.append(base)
    return filesystem, scheme, found, os.path.commonpath(bases)


def _nothing_found(path: str, filesystem: Any, inside: str) -> str:
    from pyarrow import fs

    if filesystem.get_file_info(inside).type == fs.FileType.Directory:
        return f"{path} is a directory without a .csv or .parquet file; give another, or a pattern such as {path}/*.csv"
    if re.search(r"[*?[]", inside):
        return f"{path} matches no file; check the pattern"
    folder, _, name = inside.rstrip("/").rpartition("/")
    beside = filesystem.get_file_info(fs.FileSelector(folder or "/", allow_not_found=True))
    near = difflib.get_close_matches(name, [info.base_name for info in beside], n=1, cutoff=0.75)
    return f"{path} does not exist; " + (f"did you mean {folder}/{near[0]}?" if near else "check the path")


def _filesystem(path: str) -> tuple[Any, str, str]:
    import pyarrow as pa
    from pyarrow import fs

    if not path:
        raise ConfigurationError("a path is empty; give a file, a directory or a pattern")
    if "://" not in path:
        return fs.LocalFileSystem(), "", os.path.abspath(os.path.expanduser(path))
    try:
        filesystem, inside = fs.FileSystem.from_uri(path)
    except (OSError, ImportError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path!r} cannot be reached: {error}; check the URI") from None
    return filesystem, path.partition("://")[0] + "://", inside


def _expand(filesystem: Any, path: str) -> tuple[list[Any], str]:
    """What the file system says about the files that a path stands for, and the directory that the path begins with."""
    from pyarrow import fs

    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.File:
        return [info], path.rpartition("/")[0]
    parts = path.rstrip("/").split("/")
    fixed = next((i for i, part in enumerate(parts) if re.search(r"[*?[]", part)), len(parts))
    base = "/".join(parts[:fixed])
    below = filesystem.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=fixed != len(parts) - 1))
    files = [info for info in below if info.type == fs.FileType.File and _matches(info.path, base, parts[fixed:])]
    return sorted(files, key=lambda info: str(info.path)), base


def _matches(path: str, base: str, pattern: list[str]) -> bool:
    """Whether `path` fits `pattern` below `base`, part by part; no pattern takes every data file that is not hidden."""
    parts = path[len(base) :].strip("/").split("/")
    if not pattern:
        return path.endswith((".csv", ".parquet")) and not any(part.startswith((".", "_")) for part in parts)
    return len(parts) == len(pattern) and all(map(fnmatch.fnmatchcase, parts, pattern))


def _kind(paths: Sequence[str]) -> str:
    kinds = {os.path.splitext(path)[1][1:]: path for path in reversed(paths)}
    for extension, path in kinds.items():
        if extension not in ("csv", "parquet"):
            raise ConfigurationError(f"{path}: its name has to end in .csv or .parquet, uncompressed")
    if len(kinds) > 1:
        raise ConfigurationError(f"{kinds['csv']} and {kinds['parquet']}: give files of one kind to a channel")
    return next(iter(kinds))


# ---- heads


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What the head of a CSV file, or the foot of a Parquet file, says: its columns, and its weight as in `File`."""

    names: tuple[str, ...] | None
    width: int
    weight: int
    schema: Any = ()
    groups: tuple[int, ...] = ()

    def __str__(self) -> str:
        names = f" ({', '.join(self.names[:8])}{', ...' if self.width > 8 else ''})" if self.names else " without names"
        return f"{self.width} columns{names}"


def _head(filesystem: Any, scheme: str, info: Any, kind: str, header: bool | None, delimiter: str) -> _Head:
    from pyarrow import parquet

    path = scheme + info.path
    if info.size == 0:
        raise DataError(f"{path} is empty: write it again, or leave it out")
    try:
        if kind == "csv":
            with filesystem.open_input_stream(info.path) as stream:
                return _csv_head(path, _first_line(stream), info.size, header, delimiter)
        with filesystem.open_input_file(info.path) as stream, parquet.ParquetFile(stream) as opened:
            head = _parquet_head(opened)
    except (ConfigurationError, DataError):
        raise
    except Exception as error:  # pyarrow's own, and what an extension type raises whose package is loaded
        raise DataError(_damaged(path, error)) from None
    if head.weight == 0:
        raise DataError(f"{path} {_NO_ROWS}")
    return head


def _first_line(stream: Any) -> bytes:
    read = b""
    while not re.search(rb"[\r\n]", read) and (more := stream.read(1 << 16)):
        read += more
    return re.split(rb"[\r\n]", read, maxsplit=1)[0]


def _csv_head(path: str, line: bytes, size: int, header: bool | None, delimiter: str) -> _Head:
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 in its first line ({error.reason}): save it as UTF-8") from None
    if "\0" in text:
        raise DataError(f"{path} is no text: its first line holds NUL bytes; save it as CSV in UTF-8")
    if not text.strip():
        raise DataError(f"{path} has an empty first line: remove it")
    try:
        cells = next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"{path} has a first line that is no CSV ({error}); write it again") from None
    named = not all(map(_reads_as_number, cells)) if header is None else header
    return _Head(names=unique_names(cells) if named else None, width=len(cells), weight=size)


def _parquet_head(opened: Any) -> _Head:
    schema = without_index(opened.schema_arrow)
    about = opened.metadata
    groups = tuple(about.row_group(number).num_rows for number in range(about.num_row_groups))
    return _Head(
        names=unique_names(schema.names), width=len(schema), weight=about.num_rows, schema=schema, groups=groups
    )


def _reads_as_number(cell: str) -> bool:
    if cell.strip() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check_heads(paths: Sequence[str], heads: Sequence[_Head], delimiter: str) -> None:
    first = heads[0]
    for path, head in zip(paths, heads, strict=True):
        if (head.names, head.width) != (first.names, first.width):
            raise DataError(
                f"{path} has {head} and {paths[0]} has {first}: all files of a channel need the same, in the same order"
            )
    if first.width < 2:
        hint = f": is the delimiter {delimiter!r} right?" if paths[0].endswith(".csv") else ""
        raise DataError(f"{paths[0]} has one column; a target and a feature are two{hint}")
