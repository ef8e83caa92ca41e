"""Rows in files of libsvm's format: read once when they are opened, then sparse on each worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels import fingerprint
from trainers.channels.distribution import Distribution
from trainers.channels.files.dealing import asked_for, by_request, deal
from trainers.channels.files.failures import unread
from trainers.channels.files.files import NO_ROWS, QUICK_BYTES
from trainers.channels.files.svmlight import Lines, Rows, lines_of, parsed, unlike
from trainers.channels.fingerprint import Parts
from trainers.channels.rows import QID, WEIGHT, Queries, Said, check_said
from trainers.channels.table import Heading, Table, join
from trainers.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class LibsvmFile:
    """One file, as it was when it was opened.

    Args:
        path: where it is, in its file system.
        rows: how many it has.
        entries: how many they have.
        least: the least index; None without entries.
        most: the greatest; -1 without entries.
        roles: what its lines say of their rows beside labels.
    """

    path: str
    rows: int
    entries: int
    least: int | None
    most: int
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LibsvmFiles:
    """Files of libsvm's format of one file system. Make it with `open_libsvm`.

    Args:
        filesystem: pyarrow's.
        scheme: as URIs begin with it.
        files: in order.
        options: what stands behind the question mark of their URIs.
        first: the index of the first column, 0 or 1; see `agreed`.
        width: how many columns there are.
        distribution: see `Channel.of`.
    """

    filesystem: Any
    scheme: str
    files: tuple[LibsvmFile, ...]
    options: str = ""
    first: int = 0
    width: int = 0
    distribution: Distribution | None = None
    sparse: bool = field(default=True, init=False)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.files)

    @property
    def entries(self) -> int:
        """How many entries they have."""
        return sum(file.entries for file in self.files)

    @property
    def heading(self) -> Heading:
        """The columns, which have no names."""
        return Heading(names=None, count=self.width)

    @property
    def roles_said(self) -> tuple[str, ...]:
        """See `Source`."""
        return self.files[0].roles

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`."""
        return {
            "kind": "libsvm",
            "rows": self.rows,
            "columns": None,
            "first": self.first,
            "files": [self.scheme + file.path for file in self.files],
            "target": None,
            **dict.fromkeys(self.roles_said),
            **asked_for(self.distribution),
        }

    def reopened_with(self) -> dict[str, Any]:
        """Arguments of `open_files` that open the same files again, as JSON takes them."""
        options = f"?{self.options}" if self.options else ""
        paths = [f"{self.scheme}{file.path}{options}" for file in self.files]
        return {"paths": paths, "target": None, "header": None, "delimiter": ",", **asked_for(self.distribution)}

    def fingerprint(self) -> str:
        """See `Channel.fingerprint`."""
        return self.digests()[0]

    def parts(self) -> Parts:
        """See `Channel.parts`."""
        return self.digests()[1]

    def digests(self) -> tuple[str, Parts]:
        """See `Channel.digests`."""
        infos, whole = self._infos()
        read_as = ("libsvm", *asked_for(self.distribution).values())
        return fingerprint.of_files(read_as, self.filesystem, infos, whole=whole)

    def _infos(self) -> tuple[list[Any], bool]:
        infos = self.filesystem.get_file_info([file.path for file in self.files])
        return infos, self.scheme in ("", "file://") and sum(info.size or 0 for info in infos) <= QUICK_BYTES

    def look(self) -> NDArray[np.float32] | None:
        """All labels of small local files; of others nothing, since all was read when they were opened."""
        return self.read_whole().labels if self._infos()[1] else None

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank: some files whole where that is balanced, and some rows of every other."""
        return join(self.each(rank, world_size))

    def each(self, rank: int, world_size: int) -> Iterator[Table]:
        """The same, a block of rows at a time; see `join` for what is checked of all of them."""
        if self.distribution and world_size > 1:
            asked = by_request(self.distribution, [file.rows for file in self.files], rank, world_size)
            mine = [self.files[index] for index in asked]
            yield from self._queries(mine, 0, 1) if QID in self.roles_said else self._rows(mine, 0, 1)
            return
        if QID in self.roles_said:
            yield from self._queries(self.files, rank, world_size)
            return
        dealt = deal([file.rows for file in self.files], world_size)
        for index in dealt.whole[rank]:
            yield from self._rows([self.files[index]], 0, 1)
        yield from self._rows([self.files[index] for index in dealt.by_row], rank, world_size)

    def read_whole(self) -> Table:
        """All rows, in their order."""
        return self.read(0, 1)

    def place(self, num_workers: int) -> LibsvmFiles:
        """The same files, which every worker reads for itself."""
        return self

    def _rows(self, files: Sequence[LibsvmFile], rank: int, world_size: int) -> Iterator[Table]:
        seen = 0
        for file in files:
            for lines in self._lines(file):
                mine = lines.of((rank - seen) % world_size, world_size)
                seen += len(lines)
                if not len(mine):
                    continue
                rows = _of(self._where(file), mine)
                said = {WEIGHT: rows.weights} if rows.weights is not None else {}
                yield self._table(rows, said)

    def _queries(self, files: Sequence[LibsvmFile], rank: int, world_size: int) -> Iterator[Table]:
        queries = Queries()
        for number, file in enumerate(files):
            if number:
                queries.next_file()
            for lines in self._lines(file):
                if not len(lines):
                    continue
                rows = _of(self._where(file), lines)
                assert rows.qids is not None, "files without queries are dealt out by row"
                try:
                    ids = queries.numbers(rows.qids, lines.numbers.__getitem__, rows.weights)
                except DataError as error:
                    raise DataError(f"{self._where(file)}: {_by_line(error)}") from None
                mine = np.flatnonzero(ids % world_size == rank)
                said = {QID: ids, **({WEIGHT: rows.weights} if rows.weights is not None else {})}
                whole = self._table(rows, said)
                yield Table(
                    features=whole.features[mine],
                    labels=whole.labels[mine],
                    feature_names=None,
                    said={role: of[mine] for role, of in said.items()},
                )

    def _table(self, rows: Rows, said: Said) -> Table:
        from scipy.sparse import csr_matrix

        if len(rows.indices) and int(rows.indices.max()) - self.first >= self.width:
            raise DataError("the files have changed since they were opened: open the channel again")
        matrix = csr_matrix((rows.values, rows.indices - self.first, rows.ends), shape=(len(rows.labels), self.width))
        return Table(features=matrix, labels=rows.labels, feature_names=None, said=said)

    def _lines(self, file: LibsvmFile) -> Iterator[Lines]:
        return _lines(self.filesystem, file.path, self._where(file))

    def _where(self, file: LibsvmFile) -> str:
        return self.scheme + file.path


def open_libsvm(
    filesystem: Any, scheme: str, infos: Sequence[Any], options: str, distribution: Distribution | None
) -> LibsvmFiles:
    """Reads each file once, several at a time.

    Raises:
        DataError: a line is wrong, naming it; or some rows have weights or queries, and others none.
    """
    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(partial(_looked_into, filesystem, scheme), infos))
    for file in files:
        if file.roles != files[0].roles:
            raise DataError(
                f"{scheme}{file.path} says of its rows {', '.join(file.roles) or 'nothing'}, and {scheme}"
                f"{files[0].path} {', '.join(files[0].roles) or 'nothing'}: all files of a channel need the same"
            )
    opened = LibsvmFiles(
        filesystem=filesystem, scheme=scheme, files=tuple(files), options=options, distribution=distribution
    )
    return agreed({"": opened})[""]


def agreed(sources: Mapping[str, LibsvmFiles], width: int = 0) -> dict[str, LibsvmFiles]:
    """The same files with one numbering of columns: from 1 where no file has an index 0, as scikit-learn has it.

    There are as many columns as the greatest index says, or `width`, where that is more.

    Raises:
        DataError: there is no entry in any file.
    """
    files = [file for source in sources.values() for file in source.files]
    first = int(all(file.least != 0 for file in files))
    width = max(width, *(file.most + 1 - first for file in files)) if files else width
    if files and width < 1:
        raise DataError(f"{files[0].path} has no entry in any line; a feature is one at least")
    return {name: replace(source, first=first, width=width) for name, source in sources.items()}


def _looked_into(filesystem: Any, scheme: str, info: Any) -> LibsvmFile:
    where = scheme + info.path
    if info.size == 0:
        raise DataError(f"{where} is empty: write it again, or leave it out")
    rows = entries = 0
    least, most = np.iinfo(np.int64).max, -1
    roles: tuple[str, ...] = ()
    for lines in _lines(filesystem, info.path, where):
        if not len(lines):
            continue
        block = _of(where, lines)
        said = {role: of for role, of in ((WEIGHT, block.weights), (QID, block.qids)) if of is not None}
        if rows and (other := next((role for role in (WEIGHT, QID) if (role in said) != (role in roles)), None)):
            raise DataError(f"{where}: {unlike(other, lines.numbers[0], has=other in said)}")
        try:
            check_said({role: of for role, of in said.items() if role != QID}, lines.numbers.__getitem__)
        except DataError as error:
            raise DataError(f"{where}: {_by_line(error)}") from None
        roles = tuple(said)
        rows += len(lines)
        entries += len(block.indices)
        if len(block.indices):
            least, most = min(least, int(block.indices.min())), max(most, int(block.indices.max()))
    if not rows:
        raise DataError(f"{where} {NO_ROWS}")
    return LibsvmFile(
        path=info.path, rows=rows, entries=entries, least=least if entries else None, most=most, roles=roles
    )


def _lines(filesystem: Any, path: str, where: str) -> Iterator[Lines]:
    import pyarrow as pa

    try:
        with filesystem.open_input_stream(path) as stream:
            yield from lines_of(stream)
    except (OSError, pa.ArrowException) as error:
        raise DataError(unread(where, error)) from None


def _of(where: str, lines: Lines) -> Rows:
    try:
        return parsed(lines)
    except DataError as error:
        raise DataError(f"{where}: {error}; give 'label[:weight] [qid:n] index:value ...'") from None


def _by_line(error: DataError) -> str:
    """What is wrong with a row, in a file whose rows are lines."""
    return str(error).replace("row ", "line ", 1)
