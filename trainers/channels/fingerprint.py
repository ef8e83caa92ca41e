"""A short digest of a channel's rows, equal for jobs on the same data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 64 << 20
"""How many bytes of features are read for a digest: every row of less than that, every so many-th row of more."""

_DIGEST_BYTES = 12
_PIECE = 1 << 20


def stride(rows: int, width: int) -> int:
    """One row in so many is digested."""
    return max(1, -(-rows * width * 4 // MOST_BYTES))


def of_rows(
    features: Any, labels: NDArray[np.float32], said: Mapping[str, NDArray[np.float32]], codes: Iterable[str] = ()
) -> str:
    """Of rows in memory, by their values.

    Args:
        features: as `Table` has them, of one row in so many, as `stride` says.
        labels: of all rows.
        said: of all rows, as `Table` has it.
        codes: digests of the categories of its columns, by code.
    """
    digest = _start("rows", len(labels), features.shape[1], *codes)
    if isinstance(features, np.ndarray):
        digest.update(np.ascontiguousarray(features))
    else:
        from pandas.util import hash_pandas_object

        digest.update(hash_pandas_object(features, index=False).to_numpy())
    digest.update(np.ascontiguousarray(labels))
    for role, numbers in sorted(said.items()):
        digest.update(role.encode())
        digest.update(np.ascontiguousarray(numbers))
    return str(digest.hexdigest())


def of_files(read_as: Iterable[object], filesystem: Any, infos: Iterable[Any], *, whole: bool) -> str:
    """Of files: by their bytes, or by what they are called, how large they are and when they were written.

    Args:
        read_as: what else says which rows they hold: the target's position, say.
        filesystem: pyarrow's, which has them.
        infos: what it says about each.
        whole: whether to read them.
    """
    digest = _start("files", *read_as)
    for info in infos:
        if not whole:
            digest.update(repr((info.base_name, info.size, info.mtime_ns)).encode())
            continue
        digest.update(repr(info.size).encode())
        with filesystem.open_input_stream(info.path) as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
    return str(digest.hexdigest())


def of_names(read_as: str, files: Iterable[tuple[str, int, int]]) -> str:
    """Of a folder of files: by their names, bytes and times of writing; what is in them is not read.

    Args:
        read_as: what else says what workers find.
        files: in their order.
    """
    digest = _start("folder", read_as)
    for file in files:
        digest.update(repr(file).encode())
    return str(digest.hexdigest())


def _start(*about: object) -> Any:
    return hashlib.blake2b(repr(about).encode(), digest_size=_DIGEST_BYTES)
