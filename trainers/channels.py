"""Where a channel's data comes from, and which rows each worker holds.

Row i belongs to rank `i % world_size`, whatever the source: shards are balanced within one row, a sorted file stays
mixed, and a worker can pick its rows out of a stream. Several files are read whole instead, where that is balanced.
"""

from __future__ import annotations

import csv
import difflib
import fnmatch
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trainers.errors import ConfigurationError, DataError

_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
_ENCODE = "encode it as numbers first (pandas.get_dummies, say)"
_BLOCK_BYTES = 1 << 20
_CELL_BYTES = 32
_BLOCK_CELLS = 1 << 20
_BALANCED = 1.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The rows that one worker holds; the arrays may be read-only.

    Args:
        features: float32 in C order; a DataFrame where columns of pandas' `category` dtype are among them.
        labels: one float32 a row.
        feature_names: names of the features, or None where the source has none.
    """

    features: Any
    labels: NDArray[np.float32]
    feature_names: tuple[str, ...] | None


class _Source(Protocol):
    """What a channel reads from. Its errors do not say which channel they are about; `Channel` adds that."""

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank, read in this process."""

    def place(self, num_workers: int) -> _Files | _Store:
        """What the workers read from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channel:
    """A named input of a trainer. Make it with `of`."""

    name: str
    source: _Source

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        target: str | int | None = None,
        name: str | None = None,
        header: bool | None = None,
        delimiter: str = ",",
    ) -> Channel:
        """Checks what can be checked without reading the data.

        Args:
            source: a pandas DataFrame; a NumPy array with two dimensions; a pair (X, y) of them; a path, a URI (`s3://`,
                `gs://`, `file://`), a directory, a pattern (`part-*.csv`) or a list of these, of .csv or .parquet
                files; a `ray.data.Dataset`; or a channel, which is returned under `name`.
            target: the column to predict, by name or position; None is the first column, with or without a header.
            name: what the channel is called, for messages.
            header: whether a CSV file's first line holds names; None: it does where one of its cells is no number.
            delimiter: what separates a CSV file's cells.

        Raises:
            ConfigurationError: `target` or another argument does not fit the source.
            DataError: the source is missing, empty, or holds what is not a number.
        """
        if isinstance(source, Channel):
            if target is not None or header is not None or delimiter != ",":
                raise ConfigurationError("target, header and delimiter are a Channel's own: give them where it is made")
            return source if name is None else replace(source, name=name)
        name = name or "data"
        with _about(name):
            return cls(name=name, source=_source_of(source, target, header, delimiter))

    def describe(self) -> dict[str, Any]:
        """A summary for the record, as JSON takes it: kind, rows, columns, files, target; None where not known."""
        return self.source.describe()

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank, in this process; only a Ray Dataset needs Ray for it."""
        with _about(self.name):
            _check_shard(self.source.rows, rank, world_size)
            return self.source.read(rank, world_size)

    def read_whole(self) -> Table:
        """All rows, in their order, in this process."""
        return self.read(0, 1)

    def place(self, num_workers: int) -> PlacedChannel:
        """Makes the channel readable by each of `num_workers` workers, on any node.

        What is in memory goes to Ray's object store, one object a rank; files stay where they are. Do it once a job,
        before its gangs hold the cluster: a Ray Dataset is executed here.
        """
        with _about(self.name):
            _check_shard(self.source.rows, 0, num_workers)
            return PlacedChannel(name=self.name, num_workers=num_workers, source=self.source.place(num_workers))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedChannel:
    """A channel as workers see it: small, and picklable while the driver that placed it lives."""

    name: str
    num_workers: int
    source: _Files | _Store

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank; `world_size` has to be what the channel was placed for."""
        with _about(self.name):
            if world_size != self.num_workers:
                raise ConfigurationError(
                    f"placed for {self.num_workers} workers and read by {world_size}; place it again"
                )
            _check_shard(None, rank, world_size)
            return self.source.read(rank, world_size)

    def read_whole(self) -> Table:
        """All rows, in their order."""
        with _about(self.name):
            return self.source.read_whole()


# ---- sources


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Memory:
    """Rows that the driver holds: an array or DataFrame of features, one column of which may be the target."""

    features: Any
    labels: NDArray[np.float32]
    columns: tuple[str, ...] | None
    position: int | None
    target: str | int | None

    @property
    def rows(self) -> int:
        return len(self.labels)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "numpy" if isinstance(self.features, np.ndarray) else "pandas",
            "rows": self.rows,
            "columns": list(self.columns) if self.columns else None,
            "files": [],
            "target": self.target,
        }

    def read(self, rank: int, world_size: int) -> Table:
        mine = slice(rank, None, world_size)
        if isinstance(self.features, np.ndarray):
            features = _without(self.features[mine], self.position)
        else:
            features = _frame_features(self.features.iloc[mine], self.position)
        return Table(
            features=features,
            labels=np.ascontiguousarray(self.labels[mine]),
            feature_names=_feature_names(self.columns, self.position),
        )

    def place(self, num_workers: int) -> _Store:
        import ray

        return _Store(shards=tuple((ray.put(self.read(rank, num_workers)),) for rank in range(num_workers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One file; `weight` is what balances shards: rows of a Parquet file, bytes of a CSV file."""

    path: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Files:
    """CSV or Parquet files of one file system, alike in their columns."""

    kind: str
    filesystem: Any
    scheme: str
    files: tuple[_File, ...]
    columns: tuple[str, ...] | None
    width: int
    delimiter: str
    position: int

    @property
    def rows(self) -> int | None:
        return sum(file.weight for file in self.files) if self.kind == "parquet" else None

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "rows": self.rows,
            "columns": list(self.columns) if self.columns else None,
            "files": [self.scheme + file.path for file in self.files],
            "target": self.columns[self.position] if self.columns else self.position,
        }

    def read(self, rank: int, world_size: int) -> Table:
        shares = _whole_files([file.weight for file in self.files], world_size)
        if shares is not None:
            return _join(self._pieces([self.files[index] for index in shares[rank]], 0, 1))
        return _join(self._pieces(self.files, rank, world_size))

    def read_whole(self) -> Table:
        return self.read(0, 1)

    def place(self, num_workers: int) -> _Files:
        return self

    def _pieces(self, files: Iterable[_File], rank: int, world_size: int) -> Iterator[Table]:
        """Every `world_size`-th row, from row `rank` on, of the files one after the other."""
        seen = 0
        for file in files:
            before = seen
            for block in self._blocks(file):
                yield _arrow_rows(
                    block, slice((rank - seen) % world_size, None, world_size), self.columns, self.position
                )
                seen += block.num_rows
            if seen == before:
                raise DataError(f"{self.scheme}{file.path} holds no rows: remove it, or write it again")

    def _blocks(self, file: _File) -> Iterator[Any]:
        import pyarrow as pa

        try:
            yield from self._csv_blocks(file) if self.kind == "csv" else self._parquet_blocks(file)
        except (OSError, pa.ArrowException) as error:
            raise DataError(self._problem(file, str(error))) from None

    def _csv_blocks(self, file: _File) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(position) for position in range(self.width)]
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

    def _parquet_blocks(self, file: _File) -> Iterator[Any]:
        from pyarrow import parquet

        with self.filesystem.open_input_file(file.path) as stream, parquet.ParquetFile(stream) as opened:
            rows = max(1024, _BLOCK_CELLS // self.width)
            yield from opened.iter_batches(batch_size=rows, columns=list(self.columns or ()))

    def _problem(self, file: _File, message: str) -> str:
        """What pyarrow said, with the column's own name and the remedy."""
        path = self.scheme + file.path
        text = re.match(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", message, re.DOTALL)
        if text:
            position = int(text[1])
            column = repr(self.columns[position]) if self.columns else str(position)
            row = f" in line {text[2]}" if text[2] else ""
            return f"{path}: column {column} holds {text[3]!r}{row}, which is no number; {_ENCODE}"
        if "Empty CSV file" in message or "Could not skip initial" in message:
            return f"{path} holds no rows: remove it, or write it again"
        return f"{path} is cut short or damaged ({message}); write or copy it again"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RayData:
    """A Ray Dataset. Its rows are cut into shards where they lie; none passes through the driver."""

    dataset: Any
    target: str | int | None

    @property
    def rows(self) -> int | None:
        from ray.data.dataset import MaterializedDataset

        # Counting any other dataset may execute it.
        return self.dataset.count() if isinstance(self.dataset, MaterializedDataset) else None

    def describe(self) -> dict[str, Any]:
        columns = self.dataset.columns(fetch_if_missing=False)
        return {
            "kind": "ray.data",
            "rows": self.rows,
            "columns": columns,
            "files": self.dataset.input_files(),
            "target": columns[_position(self.target, columns, len(columns))] if columns else self.target,
        }

    def read(self, rank: int, world_size: int) -> Table:
        import ray

        store = self.place(world_size)
        return _join(ray.get(piece) for piece in store.shards[rank])

    def place(self, num_workers: int) -> _Store:
        import ray

        look = ray.remote(_look).options(num_cpus=0)
        blocks = self._blocks()
        looks = ray.get([look.remote(block) for block in blocks])
        filled = [(block, rows, schema) for block, (rows, schema) in zip(blocks, looks, strict=True) if rows]
        _check_shard(sum(rows for _, rows, _ in filled), 0, num_workers)
        for _, _, schema in filled:
            _check_schema(schema)
        columns = _names(filled[0][2].names)
        position = _position(self.target, columns, len(columns))
        cut: Any = ray.remote(_cut).options(num_cpus=0, num_returns=num_workers + 1)
        pieces, seen = [], 0
        for block, rows, _ in filled:
            pieces.append(cut.remote(block, seen, num_workers, columns, position))
            seen += rows
        _check_labels(sum(ray.get([unlabelled for unlabelled, *_ in pieces])))
        return _Store(shards=tuple(tuple(piece[1 + rank] for piece in pieces) for rank in range(num_workers)))

    def _blocks(self) -> list[Any]:
        """The dataset's blocks as Arrow tables, in the order of its rows: the same for every run of a job."""
        options = self.dataset.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            blocks: list[Any] = self.dataset.to_arrow_refs()
        finally:
            options.preserve_order = before
        return blocks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Store:
    """Shards in Ray's object store: for each rank the objects that make up its shard, in order."""

    shards: tuple[tuple[Any, ...], ...]

    def read(self, rank: int, world_size: int) -> Table:
        import ray

        return _join(ray.get(piece) for piece in self.shards[rank])

    def read_whole(self) -> Table:
        world_size = len(self.shards)
        return _interleave([self.read(rank, world_size) for rank in range(world_size)])


def _look(block: Any) -> tuple[int, Any]:
    """Runs as a Ray task: rows and schema of a block."""
    return int(block.num_rows), _without_index(block.schema)


def _cut(block: Any, seen: int, num_workers: int, columns: tuple[str, ...], position: int) -> tuple[Any, ...]:
    """Runs as a Ray task: how many labels a block lacks, then each rank's rows of it; `seen` rows lie before it."""
    table = block.select(list(columns))
    first = [(rank - seen) % num_workers for rank in range(num_workers)]
    pieces = [_arrow_rows(table, slice(start, None, num_workers), columns, position) for start in first]
    return sum(_unlabelled(piece.labels) for piece in pieces), *pieces


# ---- making a source


def _source_of(source: Any, target: str | int | None, header: bool | None, delimiter: str) -> _Source:
    if _is_paths(source):
        return _files(source, target, header, delimiter)
    if header is not None or delimiter != ",":
        raise ConfigurationError("header and delimiter are for CSV files; leave them out for other sources")
    if _is_frame(source):
        return _frame(source, target)
    if isinstance(source, np.ndarray):
        return _array(source, target)
    if isinstance(source, tuple) and len(source) == 2:
        return _pair(*source, target)
    if "ray.data" in sys.modules and isinstance(source, sys.modules["ray.data"].Dataset):
        return _ray_data(source, target)
    raise ConfigurationError(
        f"cannot read from {type(source).__name__}; give a DataFrame, an array with two dimensions, a pair (X, y), "
        "paths or URIs of .csv or .parquet files, or a ray.data.Dataset"
    )


def _is_paths(source: Any) -> bool:
    paths = _as_list(source)
    return len(paths) > 0 and all(isinstance(path, str | os.PathLike) for path in paths)


def _is_frame(source: Any) -> bool:
    return "pandas" in sys.modules and isinstance(source, sys.modules["pandas"].DataFrame)


def _frame(frame: Any, target: str | int | None) -> _Memory:
    columns = _names(frame.columns)
    position = _position(target, columns, len(columns))
    _check_frame(frame, position)
    labels = _labels(frame.iloc[:, position])
    return _Memory(features=frame, labels=labels, columns=columns, position=position, target=columns[position])


def _array(array: NDArray[Any], target: str | int | None) -> _Memory:
    _check_array(array)
    position = _position(target, None, array.shape[1])
    _check_size(len(array), array.shape[1] - 1)
    return _Memory(features=array, labels=_labels(array[:, position]), columns=None, position=position, target=position)


def _pair(features: Any, labels: Any, target: str | int | None) -> _Memory:
    if target is not None:
        raise ConfigurationError(f"target={target!r} with a pair (X, y): y is the target, so leave target out")
    columns = None
    if _is_frame(features):
        columns = _names(features.columns)
        _check_frame(features, None)
    else:
        features = np.asarray(features)
        _check_array(features)
        _check_size(*features.shape)
    labels = _labels(labels)
    if len(labels) != len(features):
        raise DataError(f"X has {len(features)} rows and y has {len(labels)}: give one label a row")
    return _Memory(features=features, labels=labels, columns=columns, position=None, target=None)


def _ray_data(dataset: Any, target: str | int | None) -> _RayData:
    columns = dataset.columns(fetch_if_missing=False)
    if columns is not None:
        _position(target, columns, len(columns))
    return _RayData(dataset=dataset, target=target)


def _labels(labels: Any) -> NDArray[np.float32]:
    """One float32 a row out of an array, a Series or a DataFrame with one column."""
    values = labels if hasattr(labels, "shape") else np.asarray(labels)
    if len(values.shape) == 2 and values.shape[1] == 1:
        values = values.iloc[:, 0] if hasattr(values, "iloc") else values[:, 0]
    if len(values.shape) != 1:
        raise DataError(f"y has shape {values.shape}: give one label a row")
    if not _is_number(values.dtype):
        raise DataError(f"the target holds {values.dtype} values, no numbers; {_ENCODE}")
    numbers: NDArray[np.float32] = _series_numbers(values) if hasattr(values, "iloc") else values.astype(np.float32)
    _check_labels(_unlabelled(numbers))
    return numbers


# ---- finding files


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What the head of a CSV file, or the foot of a Parquet file, says: its columns, and its weight as in `_File`."""

    names: tuple[str, ...] | None
    width: int
    weight: int
    schema: Any = None


def _files(source: Any, target: str | int | None, header: bool | None, delimiter: str) -> _Files:
    filesystem, scheme, infos = _find([os.fspath(path) for path in _as_list(source)])
    kind = _kind([info.path for info in infos])
    if kind == "parquet" and (header is not None or delimiter != ","):
        raise ConfigurationError("header and delimiter are for CSV files; leave them out for Parquet files")
    if len(delimiter) != 1:
        raise ConfigurationError(f"delimiter={delimiter!r}: give one character")
    with ThreadPoolExecutor(16) as pool:
        heads = list(pool.map(lambda info: _head(filesystem, scheme, info, kind, header, delimiter), infos))
    first = heads[0]
    for info, head in zip(infos, heads, strict=True):
        if (head.names, head.width) != (first.names, first.width):
            raise DataError(
                f"{scheme}{info.path} has {_columns_in_words(head)} and {scheme}{infos[0].path} has "
                f"{_columns_in_words(first)}: all files of a channel need the same, in the same order"
            )
    if first.width < 2:
        hint = f": is the delimiter {delimiter!r} right?" if kind == "csv" else ""
        raise DataError(f"{scheme}{infos[0].path} has one column; a target and a feature are two{hint}")
    position = _position(target, first.names, first.width)
    if kind == "parquet":
        for head in heads:
            _check_schema(head.schema)
    return _Files(
        kind=kind,
        filesystem=filesystem,
        scheme=scheme,
        files=tuple(_File(path=info.path, weight=head.weight) for info, head in zip(infos, heads, strict=True)),
        columns=first.names,
        width=first.width,
        delimiter=delimiter,
        position=position,
    )


def _find(paths: Sequence[str]) -> tuple[Any, str, list[Any]]:
    """The file system, its scheme, and what it says about each file; directories and patterns sorted by name."""
    found: list[tuple[Any, str, list[Any]]] = []
    for path in paths:
        filesystem, scheme, inside = _filesystem(path)
        if found and scheme != found[0][1]:
            raise ConfigurationError(f"{path} and {paths[0]} are on different file systems: give files of one")
        try:
            infos = _expand(filesystem, inside)
        except OSError as error:
            raise DataError(f"{path} cannot be reached: {error}") from None
        if not infos:
            raise DataError(f"{path} does not exist, or holds no .csv or .parquet file: check the path")
        found.append((filesystem, scheme, infos))
    return found[0][0], found[0][1], [info for _, _, infos in found for info in infos]


def _filesystem(path: str) -> tuple[Any, str, str]:
    import pyarrow as pa
    from pyarrow import fs

    if "://" not in path:
        return fs.LocalFileSystem(), "", os.path.abspath(os.path.expanduser(path))
    try:
        filesystem, inside = fs.FileSystem.from_uri(path)
    except (OSError, ImportError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be reached: {error}") from None
    return filesystem, path.partition("://")[0] + "://", inside


def _expand(filesystem: Any, path: str) -> list[Any]:
    from pyarrow import fs

    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.File:
        return [info]
    parts = path.rstrip("/").split("/")
    fixed = next((i for i, part in enumerate(parts) if re.search(r"[*?[]", part)), len(parts))
    base = "/".join(parts[:fixed])
    below = filesystem.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=fixed != len(parts) - 1))
    files = [info for info in below if info.type == fs.FileType.File and _matches(info.path, base, parts[fixed:])]
    return sorted(files, key=lambda info: str(info.path))


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


def _head(filesystem: Any, scheme: str, info: Any, kind: str, header: bool | None, delimiter: str) -> _Head:
    import pyarrow as pa
    from pyarrow import parquet

    path = scheme + info.path
    if info.size == 0:
        raise DataError(f"{path} is empty: remove it, or write it again")
    try:
        if kind == "csv":
            with filesystem.open_input_stream(info.path) as stream:
                return _csv_head(_first_line(stream), info.size, header, delimiter)
        with filesystem.open_input_file(info.path) as stream, parquet.ParquetFile(stream) as opened:
            head = _parquet_head(opened)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is cut short or damaged ({error}); write or copy it again") from None
    if head.weight == 0:
        raise DataError(f"{path} holds no rows: remove it, or write it again")
    return head


def _first_line(stream: Any) -> str:
    read: bytes = b""
    while b"\n" not in read:
        more = stream.read(1 << 16)
        if not more:
            break
        read += more
    return read.partition(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r")


def _csv_head(line: str, size: int, header: bool | None, delimiter: str) -> _Head:
    cells = next(csv.reader([line], delimiter=delimiter), [])
    named = not all(map(_reads_as_number, cells)) if header is None else header
    return _Head(names=_names(cells) if named else None, width=len(cells), weight=size)


def _parquet_head(opened: Any) -> _Head:
    schema = _without_index(opened.schema_arrow)
    return _Head(names=_names(schema.names), width=len(schema), weight=opened.metadata.num_rows, schema=schema)


def _reads_as_number(cell: str) -> bool:
    if cell.strip() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _columns_in_words(head: _Head) -> str:
    names = f" ({', '.join(head.names[:8])}{', ...' if head.width > 8 else ''})" if head.names else " without names"
    return f"{head.width} columns{names}"


# ---- which rows, and putting them together


def _whole_files(weights: Sequence[int], world_size: int) -> list[list[int]] | None:
    """Which files each rank reads whole, heaviest file first to the lightest rank; None where that is not balanced."""
    if len(weights) < world_size:
        return None
    shares: list[list[int]] = [[] for _ in range(world_size)]
    loads = [0] * world_size
    for index in sorted(range(len(weights)), key=lambda index: -weights[index]):
        lightest = loads.index(min(loads))
        shares[lightest].append(index)
        loads[lightest] += weights[index]
    if max(loads) > _BALANCED * sum(loads) / world_size:
        return None
    return [sorted(share) for share in shares]


def _arrow_rows(block: Any, rows: slice, columns: tuple[str, ...] | None, position: int) -> Table:
    """Some rows of an Arrow table or record batch."""
    kept = len(range(*rows.indices(block.num_rows)))
    features = np.empty((kept, block.num_columns - 1), np.float32)
    for at, column in enumerate(_others(block.num_columns, position)):
        features[:, at] = _arrow_numbers(block.column(column))[rows]
    labels = _arrow_numbers(block.column(position))[rows].astype(np.float32)
    return Table(features=features, labels=labels, feature_names=_feature_names(columns, position))


def _arrow_numbers(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    # Through float64, so that the same number gives the same float32 whatever it was stored as.
    numbers: NDArray[Any] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _frame_features(frame: Any, position: int | None) -> Any:
    """float32 numbers, or a DataFrame of float32 numbers and categories where there are categories."""
    import pandas as pd

    places = _others(frame.shape[1], position)
    if any(isinstance(frame.dtypes.iloc[place], pd.CategoricalDtype) for place in places):
        columns = {str(frame.columns[place]): frame.iloc[:, place].reset_index(drop=True) for place in places}
        return pd.DataFrame(
            {
                name: column if isinstance(column.dtype, pd.CategoricalDtype) else _series_numbers(column)
                for name, column in columns.items()
            }
        )
    features = np.empty((len(frame), len(places)), np.float32)
    for at, place in enumerate(places):
        features[:, at] = _series_numbers(frame.iloc[:, place])
    return features


def _series_numbers(column: Any) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = column.to_numpy(np.float32, na_value=np.nan)
    return numbers


def _without(array: NDArray[Any], position: int | None) -> NDArray[np.float32]:
    if position is None:
        return np.ascontiguousarray(array, np.float32)
    features = np.empty((len(array), array.shape[1] - 1), np.float32)
    features[:, :position] = array[:, :position]
    features[:, position:] = array[:, position + 1 :]
    return features


def _join(pieces: Iterable[Table]) -> Table:
    """One shard out of its pieces, in order."""
    held = list(pieces)
    first, rows = held[0], sum(len(piece.labels) for piece in held)
    if rows == 0:
        raise DataError("this worker has no rows, since there are fewer rows than workers: use fewer workers")
    _check_labels(sum(_unlabelled(piece.labels) for piece in held))
    if len(held) == 1:
        return first
    features = np.empty((rows, first.features.shape[1]), np.float32)
    labels = np.empty(rows, np.float32)
    held.reverse()
    start = 0
    while held:
        # Each piece is let go once copied, so that the shard is not held twice.
        piece = held.pop()
        end = start + len(piece.labels)
        features[start:end], labels[start:end] = piece.features, piece.labels
        start = end
    return Table(features=features, labels=labels, feature_names=first.feature_names)


def _interleave(shards: Sequence[Table]) -> Table:
    """All rows in their order, out of the shards of all ranks."""
    first, world_size = shards[0], len(shards)
    if world_size == 1:
        return first
    labels = np.empty(sum(len(shard.labels) for shard in shards), np.float32)
    for rank, shard in enumerate(shards):
        labels[rank::world_size] = shard.labels
    if not isinstance(first.features, np.ndarray):
        return replace(first, features=_interleave_frames([shard.features for shard in shards]), labels=labels)
    features = np.empty((len(labels), first.features.shape[1]), np.float32)
    for rank, shard in enumerate(shards):
        features[rank::world_size] = shard.features
    return replace(first, features=features, labels=labels)


def _interleave_frames(frames: Sequence[Any]) -> Any:
    import pandas as pd

    step = len(frames)
    placed = [frame.set_axis(range(rank, rank + len(frame) * step, step)) for rank, frame in enumerate(frames)]
    return pd.concat(placed).sort_index()


# ---- columns and checks


def _as_list(source: Any) -> list[Any]:
    return list(source) if isinstance(source, list | tuple) else [source]


def _others(width: int, position: int | None) -> list[int]:
    return [place for place in range(width) if place != position]


def _feature_names(columns: tuple[str, ...] | None, position: int | None) -> tuple[str, ...] | None:
    return None if columns is None else tuple(columns[place] for place in _others(len(columns), position))


def _names(columns: Iterable[Any]) -> tuple[str, ...]:
    names = tuple(map(str, columns))
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"more than one column is named {twice[0]!r}: give each its own name")
    return names


def _without_index(schema: Any) -> Any:
    """Without the row labels that pandas stores beside the columns: they would be learnt from."""
    for name in [name for name in schema.names if re.fullmatch(r"__index_level_\d+__", name)]:
        schema = schema.remove(schema.get_field_index(name))
    return schema


def _position(target: str | int | None, columns: Sequence[str] | None, width: int) -> int:
    if target is None:
        return 0
    if isinstance(target, int):
        if not -width <= target < width:
            raise ConfigurationError(f"target={target}: there are {width} columns; give 0 to {width - 1}, or a name")
        return target % width
    if columns is None:
        raise ConfigurationError(f"target={target!r}: the columns have no names; give a position, 0 for the first")
    if target not in columns:
        near = difflib.get_close_matches(target, columns, n=3, cutoff=0.4) or list(columns[:8])
        raise ConfigurationError(f"target={target!r} is no column; near it are {', '.join(map(repr, near))}")
    return columns.index(target)


def _check_shard(rows: int | None, rank: int, world_size: int) -> None:
    if world_size < 1:
        raise ConfigurationError(f"{world_size} workers: give at least 1")
    if not 0 <= rank < world_size:
        raise ConfigurationError(f"rank {rank} of {world_size} workers: give 0 to {world_size - 1}")
    if rows is not None and rows < world_size:
        raise DataError(f"{rows} rows for {world_size} workers: each needs at least one; use fewer workers")


def _check_size(rows: int, features: int) -> None:
    if rows == 0:
        raise DataError("there are no rows")
    if features == 0:
        raise DataError("there is no feature besides the target")


def _check_frame(frame: Any, position: int | None) -> None:
    import pandas as pd

    places = _others(frame.shape[1], position)
    _check_size(len(frame), len(places))
    for place in places:
        dtype = frame.dtypes.iloc[place]
        if not _is_number(dtype) and not isinstance(dtype, pd.CategoricalDtype):
            raise DataError(f"column {str(frame.columns[place])!r} holds {dtype} values, no numbers; {_ENCODE}")


def _check_array(array: NDArray[Any]) -> None:
    if array.ndim != 2:
        raise DataError(f"the array has shape {array.shape}: give two dimensions, one row an example")
    if not _is_number(array.dtype):
        raise DataError(f"the array holds {array.dtype} values, no numbers; {_ENCODE}")


def _check_schema(schema: Any) -> None:
    from pyarrow import types

    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    for field in schema:
        if not any(is_number(field.type) for is_number in numbers):
            raise DataError(f"column {field.name!r} holds {field.type} values, no numbers; {_ENCODE}")


def _is_number(dtype: Any) -> bool:
    """Whether a NumPy or pandas dtype is whole, real, or true and false."""
    return not hasattr(dtype, "categories") and getattr(dtype, "kind", "O") in "iufb"


def _unlabelled(labels: NDArray[np.float32]) -> int:
    return int(np.isnan(labels).sum())


def _check_labels(unlabelled: int) -> None:
    if unlabelled:
        raise DataError(f"{unlabelled} labels are missing (NaN): drop these rows, or fill them in")


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Says in errors which channel they are about."""
    try:
        yield
    except (ConfigurationError, DataError) as error:
        raise type(error)(f"channel {name!r}: {error}") from error.__cause__
