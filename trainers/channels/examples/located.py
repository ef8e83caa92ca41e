"""Files of examples: found by their paths on the driver, and read on workers."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainers.channels.files import check_once, filesystem_of, nothing_found
from trainers.errors import ConfigurationError, DataError
from trainers.storage import check_no_credentials


@dataclass(frozen=True, slots=True)
class File:
    """One file: its path in its file system and below what was given, its bytes, and when it was written."""

    path: str
    below: str
    size: int
    written_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Files of one file system, in the order of the paths that were given, and of their names in a folder.

    Args:
        filesystem: pyarrow's.
        scheme: as URIs of it begin; empty on disks.
        files: at least one.
    """

    filesystem: Any
    scheme: str
    files: tuple[File, ...]

    def name(self, file: File) -> str:
        """A file's path or URI, for messages."""
        return self.scheme + file.path

    def read(self, file: File) -> bytes:
        """The bytes of a file.

        Raises:
            DataError: it is gone, or cannot be read.
        """
        try:
            with self.filesystem.open_input_stream(file.path) as stream:
                return bytes(stream.read())
        except OSError as error:  # pyarrow's own, too
            raise DataError(f"{self.name(file)} cannot be read: {error}; put it back, or begin a new job") from None


def located(paths: Sequence[str], endings: Sequence[str], what: str) -> Located:
    """Finds the files that paths, folders and patterns stand for.

    Args:
        paths: absolute, or URIs.
        endings: of the names of files that count in a folder, in lower case; hidden files never do.
        what: is searched for, for messages.

    Raises:
        ConfigurationError: they are on different file systems.
        DataError: there is no such file.
    """
    files: list[File] = []
    places = [(path, *filesystem_of(path)) for path in paths]
    _, filesystem, scheme, _ = places[0]
    for path, _, other, inside in places:
        check_no_credentials(path, "path")
        if other != scheme:
            raise ConfigurationError(f"{path} and {paths[0]} are on different file systems: give files of one")
        try:
            found = _expanded(filesystem, inside.rstrip("/"), tuple(endings))
        except (OSError, ValueError) as error:  # pyarrow's own are both
            raise DataError(f"{path!r} cannot be reached: {error}; check the path and your access to it") from None
        if not found:
            raise DataError(_nothing(path, filesystem, inside, endings, what))
        files += found
    check_once(scheme, [file.path for file in files])
    return Located(filesystem=filesystem, scheme=scheme, files=tuple(files))


def _nothing(path: str, filesystem: Any, inside: str, endings: Sequence[str], what: str) -> str:
    from pyarrow import fs

    if filesystem.get_file_info(inside).type == fs.FileType.Directory:
        return f"{path} is a folder without {what} ({', '.join(endings)}); give another"
    return nothing_found(path, filesystem, inside)


def _expanded(filesystem: Any, path: str, endings: tuple[str, ...]) -> list[File]:
    from pyarrow import fs

    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.File:
        return [File(info.path, info.base_name, info.size, info.mtime_ns or 0)]
    parts = path.split("/")
    fixed = next((at for at, part in enumerate(parts) if re.search(r"[*?[]", part)), len(parts))
    base = "/".join(parts[:fixed])
    pattern = parts[fixed:]
    listed = filesystem.get_file_info(fs.FileSelector(base or "/", allow_not_found=True, recursive=True))
    found = []
    for each in listed:
        below = each.path[len(base) :].strip("/")
        if each.type == fs.FileType.File and _matches(below, pattern, endings):
            found.append(File(each.path, below, each.size, each.mtime_ns or 0))
    return sorted(found, key=lambda file: file.path)


def _matches(below: str, pattern: Sequence[str], endings: tuple[str, ...]) -> bool:
    parts = below.split("/")
    if pattern:
        return len(parts) == len(pattern) and all(map(fnmatch.fnmatchcase, parts, pattern))
    return below.lower().endswith(endings) and not any(part.startswith((".", "_")) for part in parts)


def classes_of(files: Sequence[File], remedy: str) -> tuple[str, ...]:
    """The folders that files are in, below the one that was given, in the order of their names.

    Args:
        files: of one folder.
        remedy: what to do where some files are in none.

    Raises:
        DataError: some are in a folder, and some are not.
    """
    within = {file.below.split(os.sep)[0] for file in files if os.sep in file.below}
    loose = [file for file in files if os.sep not in file.below]
    if within and loose:
        raise DataError(f"{loose[0].path} is in no folder of a class, and others are, {min(within)!r} say; {remedy}")
    return tuple(sorted(within))


def labels_of(files: Sequence[File], classes: Sequence[str]) -> list[int]:
    """The number of the class that each file's folder stands for; empty where there are no classes."""
    numbers = {name: number for number, name in enumerate(classes)}
    return [numbers[file.below.split(os.sep)[0]] for file in files] if classes else []
