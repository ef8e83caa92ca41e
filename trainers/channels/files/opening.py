"""Files behind paths, URIs, directories and patterns, and the heads of CSV and Parquet files."""

from __future__ import annotations

import csv
import fnmatch
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from trainers.channels.distribution import Distribution
from trainers.channels.files.failures import unread
from trainers.channels.files.files import MISSING, NO_ROWS, Files
from trainers.channels.files.filesystems import check_once, filesystem_of, nothing_found
from trainers.channels.files.first_rows import FirstRows
from trainers.channels.files.found_categories import with_categories_found
from trainers.channels.files.kinds import ENDINGS, kind_of
from trainers.channels.files.libsvm import LibsvmFiles, open_libsvm
from trainers.channels.files.manifest import expanded
from trainers.channels.files.partitions import columns_of, values_of
from trainers.channels.files.shares import File
from trainers.channels.rows import (
    Preparation,
    Problems,
    Roles,
    coded_features,
    gathered_roles,
    has_names,
    is_text,
    may_be_categories,
    place_of,
)
from trainers.channels.table import check_schema, unique_names, without_index
from trainers.errors import ConfigurationError, DataError
from trainers.storage import check_no_credentials

LIKELY_DELIMITERS = (",", ";", "\t", "|")


def check_delimiter(delimiter: Any) -> None:
    """Refuses what pyarrow cannot split a line at."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ConfigurationError(f"delimiter={delimiter!r}: give one ASCII character, such as ',' or ';'")


def open_files(
    paths: Sequence[str],
    target: str | int | None,
    header: bool | None,
    delimiter: str,
    said: Mapping[str, Any] | None = None,
    categorical: Sequence[str | int] = (),
    distribution: Distribution | None = None,
    drop: Sequence[str | int] = (),
    keep: Sequence[str | int] = (),
    missing: float | None = None,
) -> Files | LibsvmFiles:
    """Finds the files that paths, URIs, directories and patterns stand for, and reads the head of each.

    `said` is the columns of other roles, as `Roles.of` takes them, `categorical` those whose values are categories:
    these columns are read, and so is a target that holds text; the others are as `Channel.of` has them.

    Raises:
        ConfigurationError, DataError: naming all that is wrong with the columns.
    """
    paths = expanded(paths, filesystem_of)
    filesystem, scheme, infos, base = _find(paths)
    kind = _kind([info.path for info in infos])
    options = paths[0].partition("?")[2] if scheme else ""
    if kind == "libsvm":
        columns_said = {"categorical": categorical or None, "drop": drop or None, "keep": keep or None}
        _check_no_columns(target, header, delimiter, {**(said or {}), **columns_said, "missing": missing})
        return open_libsvm(filesystem, scheme, infos, options, distribution)
    if kind == "parquet" and (header is not None or delimiter != ","):
        raise ConfigurationError("header and delimiter are for CSV files; leave them out for Parquet files")
    with ThreadPoolExecutor(16) as pool:
        heads = list(pool.map(lambda info: _head(filesystem, scheme, info, kind, header, delimiter), infos))
    names = [scheme + info.path for info in infos]
    _check_heads(names, heads, delimiter)
    keys, texts = columns_of(names, [info.path[len(base) :] for info in infos], heads[0].names or ())
    columns = unique_names([*heads[0].names, *keys]) if heads[0].names else None
    width = heads[0].width + len(keys)
    problems = Problems()
    given_roles = gathered_roles(problems, target, said or {}, columns, width, drop)
    known, roles = given_roles is not None, given_roles or Roles(target=None)
    with problems.gathered():
        if not roles.features(width):
            raise DataError(f"all {width} columns have a role, and none is a feature; give at least one more column")
    coded: list[int] = []
    with problems.gathered():
        coded = _coded(categorical, roles, columns, width, heads)
    kept = {*coded}
    with problems.gathered():
        kept |= {place_of("keep", one, columns, width) for one in keep}
    own_width = heads[0].width
    values = [
        values_of(name, keys, its, {place - own_width for place in (*coded, *roles.dropped)})
        for name, its in zip(names, texts, strict=True)
    ]
    files = Files(
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
        roles=roles,
        options=options,
        distribution=distribution,
        given=tuple(path if "://" in path else os.path.abspath(os.path.expanduser(path)) for path in paths),
    )
    first = FirstRows.of(files)
    identifiers: tuple[int, ...] = ()
    if has_names(columns):
        identifiers = first.identifiers(place for place in roles.features(width) if place not in kept)
    if len(identifiers) == len(roles.features(width)):
        identifiers = ()  # They are all that there is to learn from.
    roles = replace(roles, dropped=tuple(sorted({*roles.dropped, *identifiers})))
    features = roles.features(width)
    text_labels = known and first.is_text(roles.target if roles.target is not None else -1)
    with problems.gathered():
        named = {*coded, *(at for at in features if columns and columns[at] in {*categorical, *drop})}
        first.check([place for place in features if place not in named], target_known=known)
    if roles.target is not None:
        with problems.gathered():
            first.check_target(roles.target)
    for name, head in zip(names, heads, strict=True):
        with problems.gathered():
            _check_types(name, head, [*features, *(at for _, of in roles.said for at in of)], coded)
    problems.check()
    kinds = {place: of for place, of in first.kinds().items() if place not in coded and place not in roles.dropped}
    files = replace(
        files,
        roles=roles,
        categorical=tuple(features.index(place) for place in coded),
        preparation=Preparation(
            kinds=kinds,
            missing=missing,
            identifiers=identifiers,
            dates=tuple(
                columns[place] if columns else str(at)
                for at, place in enumerate(features)
                if place not in coded and first.is_date(place)
            ),
        ),
    )
    return with_categories_found(files, text_labels=text_labels)


def _coded(
    named: Sequence[str | int], roles: Roles, columns: Sequence[str] | None, width: int, heads: Sequence[_Head]
) -> list[int]:
    """Columns that hold categories, named or as dictionaries of some file, by their places among all."""
    features = roles.features(width)
    declared = {place for place in features if any(head.declares(place) for head in heads)}
    return sorted(declared.union(features[at] for at in coded_features(named, roles, columns, width)))


def _check_types(path: str, head: _Head, places: Sequence[int], coded: Sequence[int]) -> None:
    """Refuses columns of a Parquet file that hold neither numbers, dates nor categories; text is looked at elsewhere.

    Raises:
        DataError: naming all of them.
    """
    import pyarrow as pa

    read = [
        head.schema[place]
        for place in places
        if place < len(head.schema) and (place in coded or not is_text(head.schema[place].type))
    ]
    try:
        check_schema(pa.schema(read), [head.schema[at].name for at in coded if at < len(head.schema)], dates=True)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _check_no_columns(target: str | int | None, header: bool | None, delimiter: str, said: Mapping[str, Any]) -> None:
    given = {"target": target, "header": header, "delimiter": None if delimiter == "," else delimiter, **said}
    for name, value in given.items():
        if value is not None:
            raise ConfigurationError(
                f"{name}={value!r}: lines of libsvm files say themselves what is label, weight and qid; leave it out"
            )


def _find(paths: Sequence[str]) -> tuple[Any, str, list[Any], str]:
    """The file system, its scheme, what it says about each file, and the directory that all paths have in common.

    Files of a directory or a pattern are sorted by name.
    """
    for path in paths:
        check_no_credentials(path, "path")
    places = [filesystem_of(path) for path in paths]
    filesystem, scheme, _ = places[0]
    entries: list[Any] = []
    bases = []
    for path, (_, other, inside) in zip(paths, places, strict=True):
        if other != scheme:
            raise ConfigurationError(f"{path} and {paths[0]} are on different file systems: give files of one")
        try:
            infos, base = _expand(filesystem, inside)
        except (OSError, ValueError) as error:  # pyarrow's own are both; a name may be none that the system takes
            raise DataError(f"{path!r} cannot be reached: {error}; check the path and your access to it") from None
        if not infos:
            raise DataError(nothing_found(path, filesystem, inside))
        entries += infos
        bases.append(base)
    check_once(scheme, [info.path for info in entries])
    return filesystem, scheme, entries, os.path.commonpath(bases)


def _expand(filesystem: Any, path: str) -> tuple[list[Any], str]:
    """The file system's entries for a path, and the directory that the path begins with."""
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
        return kind_of(path) is not None and not any(part.startswith((".", "_")) for part in parts)
    return len(parts) == len(pattern) and all(map(fnmatch.fnmatchcase, parts, pattern))


def _kind(paths: Sequence[str]) -> str:
    kinds = {kind_of(path): path for path in reversed(paths)}
    if None in kinds:
        raise ConfigurationError(f"{kinds[None]}: its name has to end in {ENDINGS}")
    if len(kinds) > 1:
        one, other = sorted(kinds.values())[:2]
        raise ConfigurationError(
            f"{one} and {other}: give files of one kind to a channel, all compressed alike, or none of them"
        )
    return str(next(iter(kinds))).partition(".")[0]


# ---- heads


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """Head of a CSV file, or foot of a Parquet file: its columns, and its weight as in `File`."""

    names: tuple[str, ...] | None
    width: int
    weight: int
    schema: Any = ()
    groups: tuple[int, ...] = ()

    def declares(self, place: int) -> bool:
        """Whether the column's values are a dictionary, of what may be categories."""
        from pyarrow import types

        kind = self.schema[place].type if place < len(self.schema) else None
        return kind is not None and types.is_dictionary(kind) and may_be_categories(kind)

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
    except DataError as error:
        raise DataError(f"{path}: {error}" if path not in str(error) else str(error)) from None
    except Exception as error:  # pyarrow's own, and what an extension type raises whose package is loaded
        raise DataError(unread(path, error)) from None
    if head.weight == 0:
        raise DataError(f"{path} {NO_ROWS}")
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
        raise DataError(f"{path} has an empty first line, or is empty: remove the line, or leave the file out")
    if text.count('"') % 2:
        raise DataError(
            f"{path} has a quote in its first line that does not end there; give each column a name of one line"
        )
    try:
        cells = next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"{path} has a first line that is no CSV ({error}); write it again") from None
    named = is_heading(cells) if header is None else header
    return _Head(names=unique_names(cells) if named else None, width=len(cells), weight=size)


def _parquet_head(opened: Any) -> _Head:
    schema = without_index(opened.schema_arrow)
    about = opened.metadata
    groups = tuple(about.row_group(number).num_rows for number in range(about.num_row_groups))
    return _Head(
        names=unique_names(schema.names), width=len(schema), weight=about.num_rows, schema=schema, groups=groups
    )


def is_heading(cells: Iterable[str]) -> bool:
    """Whether the cells of a CSV file's first line are names, where nobody says so: not all of them are numbers."""
    return not all(map(_reads_as_number, cells))


def _reads_as_number(cell: str) -> bool:
    if cell.strip() in MISSING:
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
        hint = _delimiter_hint(first, delimiter) if first.schema == () else ""
        raise DataError(f"{paths[0]} has one column; a target and a feature are two{hint}")


def _delimiter_hint(head: _Head, delimiter: str) -> str:
    """Return a remedy for a CSV file with one column: the likely delimiter that its first line holds most often."""
    heading = head.names[0] if head.names else ""
    other = max((each for each in LIKELY_DELIMITERS if each != delimiter), key=heading.count)
    if heading.count(other):
        return f", and the delimiter is {delimiter!r}; its first line holds {other!r}: give delimiter={other!r}"
    return f": is the delimiter {delimiter!r} right?"
