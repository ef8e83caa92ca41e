"""File systems of paths and URIs, and what is said where one has no such file."""

from __future__ import annotations

import os
import re
from typing import Any

from trainers.channels.files.kinds import ENDINGS
from trainers.checking import nearest
from trainers.errors import ConfigurationError, DataError


def nothing_found(path: str, filesystem: Any, inside: str) -> str:
    """The message about a path that has no file, with the nearest name beside it.

    Args:
        path: as it was given.
        filesystem: pyarrow's, which it is in.
        inside: the path there.
    """
    from pyarrow import fs

    if filesystem.get_file_info(inside).type == fs.FileType.Directory:
        return f"{path} is a directory without a file of rows, {ENDINGS}; give another, or a pattern: {path}/*.csv"
    if re.search(r"[*?[]", inside):
        return f"{path} matches no file; check the pattern"
    folder, _, name = inside.rstrip("/").rpartition("/")
    beside = filesystem.get_file_info(fs.FileSelector(folder or "/", allow_not_found=True))
    near = nearest(name, [info.base_name for info in beside], cutoff=0.75)
    return f"{path} does not exist; " + (f"did you mean {folder}/{near}?" if near else "check the path")


def filesystem_of(path: str) -> tuple[Any, str, str]:
    """Pyarrow's file system of a path or URI, its scheme as URIs begin with it, and the path in it.

    Raises:
        ConfigurationError: it is empty.
        DataError: there is no such file system.
    """
    import pyarrow as pa
    from pyarrow import fs

    if not path:
        raise ConfigurationError("a path is empty; give a file, a directory or a pattern")
    if "://" not in path:
        try:
            return fs.LocalFileSystem(), "", os.path.abspath(os.path.expanduser(path))
        except ValueError as error:  # After "~" comes a NUL byte or a letter that no user's name can hold.
            raise DataError(f"{path!r} cannot be reached: {error}; check the path") from None
    try:
        filesystem, inside = fs.FileSystem.from_uri(path)
    except (OSError, ImportError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path!r} cannot be reached: {error}; check the URI") from None
    return filesystem, path.partition("://")[0] + "://", inside
