"""File systems of object stores: asked again for half a minute at most, and listed with the folders that keys make."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

RETRY_SECONDS = 30
"""How long a request to Google's storage is tried again, where its URI does not say; pyarrow would for 15 minutes."""


def filesystem_of(uri: str) -> tuple[Any, str]:
    """Pyarrow's file system that serves a URI, and the path in it.

    Raises:
        OSError, ValueError: pyarrow's, where there is none.
    """
    # Imported late: local checkpoints, the common case, need no pyarrow.
    from pyarrow.fs import FileSystem

    split = urlsplit(uri)
    if split.scheme in ("gs", "gcs") and "retry_limit_seconds" not in parse_qs(split.query):
        uri += f"{'&' if split.query else '?'}retry_limit_seconds={RETRY_SECONDS}"
    filesystem, path = FileSystem.from_uri(uri)
    return filesystem, path


def kept_filesystem_of(uri: str) -> tuple[Any, str]:
    """The same, a bucket's file system made once a process: that finds credentials and opens connections."""
    split = urlsplit(uri)
    if split.scheme not in ("s3", "gs"):
        return filesystem_of(uri)
    filesystem, bucket = _bucket(f"{split.scheme}://{split.netloc}" + (f"?{split.query}" if split.query else ""))
    return filesystem, (bucket + unquote(split.path)).rstrip("/")


def read(filesystem: Any, path: str, at: int = 0, size: int | None = None) -> bytes:
    """Bytes of a file; see `storage.read`.

    Of Google's storage, `size()` and `read_at()` of an open file (pyarrow 26) ask the server for its size while all
    threads of the process wait: for a moment, and not for the bytes.
    """
    if size is None:
        with filesystem.open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())
    with filesystem.open_input_file(path) as stream:
        return bytes(stream.read_at(size, min(at, stream.size())))


def names(filesystem: Any, path: str) -> list[str]:
    """The names of what a folder holds, sorted; none where it is not there."""
    from pyarrow.fs import FileSelector

    # Pyarrow lists folders of Google's that an object of their own stands for, and none that keys alone make.
    deep = filesystem.type_name == "gcs"
    infos = filesystem.get_file_info(FileSelector(path, allow_not_found=True, recursive=deep))
    if not deep:
        return sorted(info.base_name for info in infos)
    return sorted({info.path[len(path) :].strip("/").partition("/")[0] for info in infos} - {""})


@lru_cache(maxsize=8)
def _bucket(uri: str) -> tuple[Any, str]:
    return filesystem_of(uri)
