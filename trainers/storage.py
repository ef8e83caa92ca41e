"""Checkpoint files on local disks and object stores: written whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from trainers.errors import DataError


def read(uri: str) -> bytes:
    """All bytes of the file at `uri`, a local path or a URI that pyarrow knows.

    Raises:
        DataError: there is no such file.
    """
    try:
        if _is_local(uri):
            return Path(uri).read_bytes()
        filesystem, path = _resolve(uri)
        with filesystem.open_input_stream(path) as stream:
            return bytes(stream.read())
    except FileNotFoundError as error:
        raise DataError(
            f"checkpoint {uri!r} is not there; was its folder removed, or is it on another node?"
        ) from error


def write(uri: str, data: bytes) -> None:
    """Writes a file so that no reader ever sees a part of it: local files by renaming, object stores do so anyway."""
    if _is_local(uri):
        path = Path(uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            draft.write_bytes(data)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        return
    filesystem, path_in_store = _resolve(uri)
    if filesystem.type_name == "local":
        write(path_in_store, data)
        return
    with filesystem.open_output_stream(path_in_store) as stream:
        stream.write(data)


def join(base: str, *parts: str) -> str:
    """`base` and `parts` as one path or URI."""
    return "/".join([base.rstrip("/"), *parts])


def _is_local(uri: str) -> bool:
    return not urlparse(uri).scheme


def _resolve(uri: str) -> Any:
    # Imported late: local checkpoints, the common case, need no pyarrow.
    from pyarrow.fs import FileSystem

    return FileSystem.from_uri(uri)
