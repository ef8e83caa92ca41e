"""All files below a folder, on a disk or in an object store."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainers.channels.files import filesystem_of, nothing_found
from trainers.errors import DataError
from trainers.storage import check_no_credentials, local_path, shown


@dataclass(frozen=True, slots=True)
class Found:
    """One file: its name from the folder on, with slashes, its bytes, and when it was written."""

    name: str
    size: int
    written_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a folder, sorted by name, at one time.

    Args:
        where: the folder's absolute path, or its URI.
        files: at least one.
        filesystem: pyarrow's, of an object store; None of a disk.
        inside: the folder in that file system.
    """

    where: str
    files: tuple[Found, ...]
    filesystem: Any = None
    inside: str = ""


def listing_of(path: str) -> Listing:
    """Lists a folder, with those in it; links are followed.

    Raises:
        ConfigurationError: a URI holds credentials.
        DataError: it is not there, cannot be read, is no folder, holds no file, or what is no file.
    """
    check_no_credentials(path, "folder")
    try:
        local = local_path(os.path.expanduser(path) if "://" not in path else path)
        listing = _stored(path) if local is None else _local(path, os.path.abspath(local))
    except OSError as error:  # pyarrow's own, too
        place = shown(str(error.filename or path))
        reason = shown(str(error.strerror or error))
        raise DataError(f"folder {place!r} cannot be read: {reason}; check the path and your access to it") from None
    if not listing.files:
        raise DataError(f"folder {shown(path)!r} holds no file; fill it, or check the path")
    return listing


def _local(path: str, folder: str) -> Listing:
    if not os.path.exists(folder):
        filesystem, _, inside = filesystem_of(folder)
        raise DataError(nothing_found(folder, filesystem, inside))
    if not os.path.isdir(folder):
        raise DataError(
            f"folder {path!r} is a file; give the folder that it is in, or the path alone, without Folder, for rows"
        )
    found = sorted(_below(folder, "", (os.path.realpath(folder),)), key=lambda file: file.name)
    return Listing(where=folder, files=tuple(found))


def _below(folder: str, name: str, above: Sequence[str]) -> Iterator[Found]:
    """The files of a folder, and of those in it.

    Args:
        folder: its path.
        name: from the listed folder on, with a slash behind; empty for that one.
        above: itself and those that it is in, without links: one that a link leads back to is refused.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                about = entry.stat()
            except FileNotFoundError:
                what = "a link to what is not there" if entry.is_symlink() else "gone while the folder was listed"
                raise DataError(f"{entry.path!r} is {what}; remove it, or put its file back") from None
            if stat.S_ISREG(about.st_mode):
                yield Found(name + entry.name, about.st_size, about.st_mtime_ns)
            elif not stat.S_ISDIR(about.st_mode):
                raise DataError(f"{entry.path!r} is neither a file nor a folder; move it out of the channel's folder")
            else:
                real = os.path.realpath(entry.path)
                if real in above:
                    raise DataError(f"{entry.path!r} is a link to a folder that it is in; remove it")
                yield from _below(entry.path, f"{name}{entry.name}/", (*above, real))


def _stored(uri: str) -> Listing:
    from pyarrow import fs

    filesystem, _, inside = filesystem_of(uri)
    inside = inside.rstrip("/")
    kind = filesystem.get_file_info(inside).type
    if kind == fs.FileType.NotFound:
        raise DataError(nothing_found(shown(uri), filesystem, inside))
    if kind == fs.FileType.File:
        raise DataError(f"folder {shown(uri)!r} is one object; give what its key begins with, up to a slash")
    infos = filesystem.get_file_info(fs.FileSelector(inside, recursive=True))
    files = [
        Found(info.path[len(inside) + 1 :], info.size, info.mtime_ns or 0)
        for info in infos
        if info.type == fs.FileType.File
    ]
    _check_names(uri, [file.name for file in files])
    return Listing(
        where=uri, files=tuple(sorted(files, key=lambda file: file.name)), filesystem=filesystem, inside=inside
    )


def _check_names(uri: str, names: Sequence[str]) -> None:
    """Refuses keys that no folder of a disk can have: an object store takes any."""
    known = set(names)
    for name in names:
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise DataError(f"folder {shown(uri)!r} has an object {name!r}, which is no path of a file; rename it")
        for end in range(1, len(parts)):
            if (outer := "/".join(parts[:end])) in known:
                raise DataError(
                    f"folder {shown(uri)!r} has an object {outer!r} and one below it, {name!r}, and a disk cannot have "
                    "both; rename one"
                )
