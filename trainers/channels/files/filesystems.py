"""File systems of paths and URIs, and what is said where one has no such file."""

from __future__ import annotations

import copyreg
import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from trainers import object_stores
from trainers.channels.files.kinds import ENDINGS
from trainers.checking import nearest
from trainers.errors import ConfigurationError, DataError

_TRIES = 8
"""Of a request to a store that asks to slow down: half a minute together, as AWS's standard strategy waits."""


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


def check_once(scheme: str, paths: Iterable[str]) -> None:
    """Refuses a file that several paths stand for.

    Args:
        scheme: as URIs of their file system begin; empty on disks.
        paths: of all files, in that file system.

    Raises:
        DataError: naming the file.
    """
    path, times = Counter(paths).most_common(1)[0]
    if times > 1:
        raise DataError(
            f"{scheme}{path} is named {'twice' if times == 2 else f'{times} times'} by the paths of a channel, so that "
            "what it holds would count as often; name it once"
        )


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
        filesystem, inside = object_stores.filesystem_of(path)
    except (OSError, ImportError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path!r} cannot be reached: {error}; check the URI") from None
    _patient_when_pickled(filesystem)
    return filesystem, path.partition("://")[0] + "://", inside


def _patient_when_pickled(filesystem: Any) -> None:
    """Lets file systems of S3 try as often in the process that they are sent to; does nothing about others.

    Args:
        filesystem: pyarrow's. Pickled, one of S3 (pyarrow 26) loses its retry strategy, and gives up after 3 tries in
            less than a second.
    """
    if filesystem.type_name == "s3":
        copyreg.pickle(type(filesystem), _reduced)


def _reduced(filesystem: Any) -> tuple[Any, tuple[dict[str, Any]]]:
    _, (options,) = filesystem.__reduce__()
    return _patient, (options,)


def _patient(options: dict[str, Any]) -> Any:
    from pyarrow import fs

    return fs.S3FileSystem(**{**options, "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES)})
