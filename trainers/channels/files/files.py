"""Rows in CSV or Parquet files, and a worker's share of them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import fingerprint
from trainers.channels.arrow import arrow_rows
from trainers.channels.distribution import Distribution
from trainers.channels.files.dealing import asked_for, by_request
from trainers.channels.files.failures import unread
from trainers.channels.files.partitions import with_values
from trainers.channels.files.shares import File, Part, Share, shares, text_bytes
from trainers.channels.fingerprint import Parts
from trainers.channels.rows import (
    DATE,
    QID,
    TRUTH,
    ZONED,
    Categories,
    Coding,
    Preparation,
    Queries,
    Roles,
    described,
    framed,
    is_identifier_name,
    is_text,
)
from trainers.channels.table import ENCODE, NAME_IT, Heading, Table, join, without_index
from trainers.errors import DataError

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
REOPEN = "put the old file back, or open the channel again"
NO_ROWS = "holds no rows: write it again, or leave it out"
# Files of one channel that a driver reads in about a second, to find what is wrong before anything starts.
QUICK_BYTES = 32 << 20
QUICK_REMOTE_BYTES = 4 << 20
"""The same of files on an object store or another remote file system."""
_LOCAL = ("", "file://")
_COUNTED_ROWS = 1_000_000
_BLOCK_BYTES = 1 << 20
_CELL_BYTES = 32
_BLOCK_CELLS = 1 << 20
_MOST_CELLS = 8 << 20
_LEAST_PART = 4096


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
    roles: Roles
    options: str = ""
    """What stands behind the question mark of their URIs."""
    given: tuple[str, ...] = ()
    """The paths that they were found by."""
    distribution: Distribution | None = None
    """See `Channel.of`."""
    categorical: tuple[int, ...] = ()
    """Which features hold categories, by their places among the features."""
    coding: Coding = field(default_factory=dict)
    """Their categories, which may be those of other files."""
    preparation: Preparation = field(default_factory=Preparation)
    """How cells become numbers; text labels may have the classes of other files."""

    def ordered_like(self, names: Sequence[str]) -> Files:
        """The same rows with the features of another table, in its order; see `Roles.ordered_like`."""
        roles = self.roles.ordered_like(self.columns or (), names)
        mine = self.roles.features(self.width)
        places = {place: at for at, place in enumerate(roles.features(self.width))}
        moved = {at: places[mine[at]] for at in self.categorical if mine[at] in places}
        return replace(
            self,
            roles=roles,
            categorical=tuple(sorted(moved.values())),
            coding={moved[at]: of for at, of in self.coding.items() if at in moved},
        )

    def classed(self, classes: Categories) -> Files:
        """The same rows whose text labels have the classes of others."""
        return replace(self, preparation=replace(self.preparation, classes=classes))

    def coded(self, coding: Coding) -> Files:
        """The same rows with the codes of others.

        Raises:
            DataError: a category is none of these, naming file and row.
        """
        made = replace(self, coding=coding, categorical=tuple(coding))
        if any(at not in self.coding or not _within(self.coding[at], of) for at, of in coding.items()):
            for _ in made.each(0, 1):  # Raises at the row; where only a dictionary has more, there is none.
                pass
        return made

    @property
    def rows(self) -> int | None:
        """How many rows there are, which only Parquet files tell."""
        return sum(file.weight for file in self.files) if self.kind == "parquet" else None

    @property
    def heading(self) -> Heading:
        """The columns beside the target."""
        return Heading(names=self.roles.feature_names(self.columns), count=len(self.roles.features(self.width)))

    @property
    def text_bytes(self) -> int:
        """Bytes of CSV files; see `text_bytes`."""
        return text_bytes(self.files)

    @property
    def own_width(self) -> int:
        """How many columns stand in the files."""
        return self.width - len(self.files[0].values)

    def look(self) -> NDArray[np.float32] | None:
        """Read small files whole, and the beginning of larger local files; return all labels of small files."""
        if self.is_quick:
            return self.read_whole().labels
        if self.scheme in _LOCAL:
            next(self._blocks(self.files[0]), None)
        return None

    @property
    def is_quick(self) -> bool:
        """Whether a driver reads all rows within about a second."""
        return self._size(self.files) <= (QUICK_BYTES if self.scheme in _LOCAL else QUICK_REMOTE_BYTES)

    def fingerprint(self) -> str:
        """See `Channel.fingerprint`."""
        return self.digests()[0]

    def parts(self) -> Parts:
        """See `Channel.parts`."""
        return self.digests()[1]

    def digests(self) -> tuple[str, Parts]:
        """See `Channel.digests`."""
        try:
            infos, whole = self._infos()
            values = [*(file.values for file in self.files if file.values), *asked_for(self.distribution).values()]
            codes = [(at, categories.digest()) for at, categories in self.coding.items()]
            chosen = (("features", *self.roles.features(self.width)),) if self.roles.dropped or self.roles.order else ()
            prepared = (*chosen, *self.preparation.digest())
            read_as = (self.kind, self.columns, self.delimiter, self.roles.target, *self.roles.said, *values, *codes)
            read_as = (*read_as, *prepared)
            return fingerprint.of_files(read_as, self.filesystem, infos, whole=whole)
        except OSError as error:
            raise _unreadable(error) from None

    def _infos(self) -> tuple[list[Any], bool]:
        """What the file system says of the files, and whether they are digested by their bytes."""
        infos = self.filesystem.get_file_info([file.path for file in self.files])
        return infos, self.scheme in _LOCAL and sum(info.size or 0 for info in infos) <= QUICK_BYTES

    @property
    def sparse(self) -> bool:
        """See `Source`."""
        return False

    @property
    def roles_said(self) -> tuple[str, ...]:
        """See `Source`."""
        return self.roles.names

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "columns": list(self.columns) if self.columns else None,
            "files": [self.scheme + file.path for file in self.files],
            **self.roles.described(self.columns),
            **({"categorical": described(self.coding, self.heading.names)} if self.coding else {}),
            **self.preparation.described(self.columns),
            **asked_for(self.distribution),
        }

    def reopened_with(self) -> dict[str, Any]:
        """Arguments of `open_files` that open the same files again, as JSON takes them."""
        options = f"?{self.options}" if self.options else ""
        files = [f"{self.scheme}{file.path}{options}" for file in self.files]
        return {
            # Which directories make columns depends on the paths that were given.
            "paths": list(self.given) if self.own_width < self.width else files,
            "target": self.roles.target,
            "header": None if self.kind == "parquet" else self.columns is not None,
            "delimiter": self.delimiter,
            **({"said": {role: list(places) for role, places in self.roles.said}} if self.roles.said else {}),
            **({"categorical": self._coded_columns} if self.categorical else {}),
            **({"drop": list(self.roles.dropped)} if self.roles.dropped else {}),
            # What was not left out stays, whatever it is called.
            **({"keep": kept} if (kept := self._like_identifiers()) else {}),
            **({"missing": self.preparation.missing} if self.preparation.missing is not None else {}),
            **asked_for(self.distribution),
        }

    def _like_identifiers(self) -> list[int]:
        """Features that are called as identifiers usually are."""
        columns = self.columns or ()
        return [at for at in self.roles.features(self.width) if columns and is_identifier_name(columns[at])]

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank: some files whole where that is balanced, and some rows of every other.

        Of large Parquet files it is some row groups whole, so that not every rank decodes all of them.
        """
        return self.with_categories(join(self.each(rank, world_size)))

    def with_categories(self, table: Table) -> Table:
        """Rows of `pieces` with categories in the place of codes."""
        if not self.coding:
            return table
        return replace(table, features=framed(table.features, table.feature_names, self.coding))

    @property
    def _coded_columns(self) -> list[int]:
        """Where the columns with categories are among all."""
        features = self.roles.features(self.width)
        return [features[at] for at in self.categorical]

    def each(self, rank: int, world_size: int) -> Iterator[Table]:
        """The same in pieces of few megabytes; of categories, codes."""
        for share in self._shares(rank, world_size):
            yield from self._pieces(share.parts, share.rank, share.world_size, share.turns)

    def decoded(self, rank: int, world_size: int) -> float:
        """The share of all rows that a rank decodes to have its own."""
        mine = sum(share.weight for share in self._shares(rank, world_size))
        return mine / sum(file.weight for file in self.files)

    def _shares(self, rank: int, world_size: int) -> Iterator[Share]:
        if self.distribution and world_size > 1:
            mine = by_request(self.distribution, [file.weight for file in self.files], rank, world_size)
            yield Share([(self.files[index], ()) for index in mine])
        elif QID in self.roles.names:  # Which are a rank's is known once all before were read.
            yield Share([(file, ()) for file in self.files], rank, world_size)
        else:
            yield from shares(self.files, rank, world_size, small=lambda files: self._size(files) <= QUICK_BYTES)

    def _size(self, files: Sequence[File]) -> int:
        """Bytes of text, and about how many Parquet files have in memory."""
        return text_bytes(files) if self.kind == "csv" else sum(file.weight for file in files) * self.width * 8

    def read_whole(self) -> Table:
        """All rows, in their order."""
        return self.read(0, 1)

    def place(self, num_workers: int) -> Files:
        """The same files, which every worker reads for itself."""
        return self

    def _pieces(self, parts: Iterable[Part], rank: int, world_size: int, turns: Sequence[int] = ()) -> Iterator[Table]:
        """The rows of one rank, out of files or row groups of them, one after the other."""
        seen, queries = 0, Queries() if QID in self.roles.names else None
        for file, groups in parts:
            before = seen
            if queries is not None and seen:
                queries.next_file()
            for block in self._blocks(file, groups):
                number = partial(file.row, groups, seen - before)
                try:
                    yield arrow_rows(
                        block,
                        self.columns,
                        self.roles,
                        seen=seen,
                        rank=rank,
                        world_size=world_size,
                        number=number,
                        queries=queries,
                        turns=turns,
                        coding=self.coding,
                        preparation=self.preparation,
                    )
                except DataError as error:
                    raise DataError(f"{self.scheme}{file.path}: {error}") from None
                seen += block.num_rows
            if seen == before and not groups:
                raise DataError(f"{self.scheme}{file.path} {NO_ROWS}")

    def columns_alone(
        self, file: File, places: Sequence[int], *, text: bool = False, rows: int | None = None
    ) -> Iterator[Any]:
        """Some of the columns that stand in a file, as Arrow record batches.

        Args:
            file: one of these.
            places: of the columns.
            text: whether CSV cells stay text, whatever they hold.
            rows: of a batch of a Parquet file, at most.
        """
        return self._blocks(file, only=places, text=text, rows=rows)

    def _blocks(
        self,
        file: File,
        groups: tuple[int, ...] = (),
        only: Sequence[int] | None = None,
        text: bool = False,
        rows: int | None = None,
    ) -> Iterator[Any]:
        """The rows of a file, or of some row groups of a Parquet file; only some columns, or all and directories'."""
        import pyarrow as pa

        every = [place for place in range(self.own_width) if place not in self.roles.dropped]
        places = every if only is None else only
        try:
            for block in (
                self._csv_blocks(file, places, text=text)
                if self.kind == "csv"
                else self._parquet_blocks(file, groups, places, rows)
            ):
                yield block if only is not None else with_values(self._in_place(block, every), file.values)
        except (OSError, pa.ArrowException) as error:
            raise DataError(self._problem(file, str(error))) from None

    def _in_place(self, block: Any, places: Sequence[int]) -> Any:
        """A block with nulls in the place of columns that are left out, which are not read."""
        import pyarrow as pa

        if len(places) == self.own_width:
            return block
        found = dict(zip(places, block.columns, strict=True))
        columns = [found.get(place, pa.nulls(block.num_rows)) for place in range(self.own_width)]
        return pa.RecordBatch.from_arrays(columns, [str(place) for place in range(self.own_width)])

    def _csv_types(self, *, text: bool) -> list[Any]:
        """Arrow types of the cells of each column; columns that are left out are of any."""
        import pyarrow as pa

        of_kind = {TRUTH: pa.bool_(), DATE: pa.timestamp("us"), ZONED: pa.timestamp("us", "UTC")}
        types = [of_kind.get(self.preparation.kinds.get(at, ""), pa.float64()) for at in range(self.own_width)]
        of_text = {*self._coded_columns, *([self.roles.target] if self.preparation.classes is not None else [])}
        for at in range(self.own_width):
            if text or at in self.roles.dropped:
                types[at] = pa.string()
            elif at in of_text:
                types[at] = pa.dictionary(pa.int32(), pa.string())
        return types

    def _csv_blocks(self, file: File, places: Sequence[int], *, text: bool) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(position) for position in range(self.own_width)]
        kinds = dict(zip(names, self._csv_types(text=text), strict=True))
        quoted = any(is_text(kind) or pa.types.is_dictionary(kind) for kind in kinds.values())
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
                # Numbers have no line ends in them, and blocks are found faster where text need not be looked at.
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=quoted),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds,
                    null_values=list(MISSING),
                    strings_can_be_null=True,
                    include_columns=[names[at] for at in places],
                ),
            )

    def _parquet_blocks(
        self, file: File, groups: tuple[int, ...], places: Sequence[int], most: int | None
    ) -> Iterator[Any]:
        from pyarrow import parquet

        # Of large row groups a part at a time: by default, all bytes of one come into memory.
        large = max(file.groups) * self.width * 8 > QUICK_BYTES
        part = max(_LEAST_PART, _BLOCK_BYTES * 8 // self.width) if large else 0
        names = self.columns or ()
        coded = [names[at] for at in self._coded_columns if at < self.own_width]
        with (
            self.filesystem.open_input_file(file.path) as stream,
            parquet.ParquetFile(
                stream, buffer_size=part, read_dictionary=coded, page_checksum_verification=True
            ) as opened,
        ):
            counts = tuple(opened.metadata.row_group(number).num_rows for number in range(opened.num_row_groups))
            if counts != file.groups or without_index(opened.schema_arrow).names != list(names[: self.own_width]):
                raise DataError(f"{self.scheme}{file.path} has changed since its channel was opened: {REOPEN}")
            rows = max(min(1024, _MOST_CELLS // self.width), _BLOCK_CELLS // self.width, 1)
            yield from opened.iter_batches(
                batch_size=min(rows, most or rows),
                row_groups=list(groups) or None,
                columns=[names[at] for at in places],
            )

    def _problem(self, file: File, message: str) -> str:
        """Pyarrow's error, with the line, the column's own name and the remedy."""
        path = self.scheme + file.path
        text = re.match(
            r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid (?:value '(.*)'|UTF8 data)", message, re.DOTALL
        )
        if text and (text[3] is None or "\ufffd" in text[3]):
            return f"{path} is not UTF-8{self._where(file, text[2])}: save it as UTF-8"
        if text:
            position = int(text[1])
            column = repr(self.columns[position]) if self.columns else str(position)
            remedy = NAME_IT if position in self.roles.features(self.width) else ENCODE
            where = self._where(file, text[2])
            return f"{path}: column {column} holds {text[3]!r}{where}, which is no number; {remedy}"
        cells = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
        if cells:
            line = self._where(file, cells[1])
            return (
                f"{path} has {_cells(cells[3])}{line} and {_cells(cells[2])} in its first: it is cut short or damaged; "
                f"write or copy it again, and check that the delimiter is {self.delimiter!r}"
            )
        if "Empty CSV file" in message or "Could not skip initial" in message:
            return f"{path} {NO_ROWS}"
        return unread(path, message)

    def where(self, file: File, row: int) -> str:
        """In which line of a CSV file a row is, for a message; rows count from 1, without the header."""
        return self._where(file, str(row + (1 if self.columns else 0)))

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


def _within(own: Categories, others: Categories) -> bool:
    known = set(map(str, others.values))
    return own.of_text == others.of_text and all(str(value) in known for value in own.values)


def _cells(count: str) -> str:
    return f"{count} cell" + ("s" if count != "1" else "")


def _unreadable(error: OSError) -> DataError:
    return DataError(f"the files cannot be read: {error}; check that they are still there")
