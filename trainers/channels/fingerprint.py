"""A short digest of a channel's rows, equal for jobs on the same data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.sparse import is_sparse, parts_of

Parts = Mapping[str, str]
"""Digests of what a channel is made of, each by its name in a sentence, for a message about what has changed."""

MOST_BYTES = 64 << 20
"""How many bytes of features are read for a digest: every row of less than that, every so many-th row of more."""

MOST_PARTS = 2000
"""Files, or columns, that are digested one by one, so that a change names them."""

_DIGEST_BYTES, _PART_BYTES = 12, 6
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
    elif is_sparse(features):
        for array in parts_of(features).values():
            digest.update(array)
    else:
        from pandas.util import hash_pandas_object

        digest.update(hash_pandas_object(features, index=False).to_numpy())
    digest.update(np.ascontiguousarray(labels))
    for role, numbers in sorted(said.items()):
        digest.update(role.encode())
        digest.update(np.ascontiguousarray(numbers))
    return str(digest.hexdigest())


def of_files(read_as: Iterable[object], filesystem: Any, infos: Sequence[Any], *, whole: bool) -> tuple[str, Parts]:
    """Of files: by their bytes, or by what they are called, how large they are and when they were written.

    Each is read once for both.

    Args:
        read_as: what else says which rows they hold: the target's position, say.
        filesystem: pyarrow's, which has them.
        infos: what it says about each.
        whole: whether to read them.

    Returns:
        The digest of all, and those of each by its path.
    """
    digest, parts = _start("files", *read_as), {}
    for info in infos:
        part = hashlib.blake2b(repr(info.size).encode(), digest_size=_PART_BYTES)
        if not whole:
            digest.update(repr((info.base_name, info.size, info.mtime_ns)).encode())
            part.update(repr(info.mtime_ns).encode())
        else:
            digest.update(repr(info.size).encode())
            with filesystem.open_input_stream(info.path, compression=None) as stream:
                while piece := stream.read(_PIECE):
                    digest.update(piece)
                    part.update(piece)
        parts[f"file {info.path}"] = part.hexdigest()
    return str(digest.hexdigest()), parts if len(infos) <= MOST_PARTS else {}


def parts_of_rows(features: Any, labels: NDArray[np.float32], said: Mapping[str, Any], names: Sequence[str]) -> Parts:
    """Digests of the columns of rows in memory, of the labels, and of what else is said of rows.

    Args:
        features: as `of_rows` takes them.
        labels: of all rows.
        said: of all rows.
        names: of the features.
    """
    parts = {"the labels": _part(labels), **{f"the {role} of rows": _part(values) for role, values in said.items()}}
    if len(names) > MOST_PARTS:
        return parts
    if is_sparse(features):
        features = features.tocsc()
    return parts | {f"column {name!r}": _part(_column(features, at)) for at, name in enumerate(names)}


def parts_of_names(files: Iterable[tuple[str, int, int]]) -> Parts:
    """Digests of a folder's files by their names; see `of_names`."""
    held = list(files)
    return {f"file {file[0]}": _part(repr(file[1:]).encode()) for file in held} if len(held) <= MOST_PARTS else {}


def _column(features: Any, at: int) -> Any:
    if isinstance(features, np.ndarray):
        return features[:, at]
    if is_sparse(features):
        entries = slice(features.indptr[at], features.indptr[at + 1])
        return features.indices[entries].astype(np.int32).tobytes() + features.data[entries].tobytes()
    from pandas.util import hash_pandas_object

    return hash_pandas_object(features.iloc[:, at], index=False).to_numpy()


def _part(values: Any) -> str:
    content: Any = values if isinstance(values, bytes) else np.ascontiguousarray(values)
    return hashlib.blake2b(content, digest_size=_PART_BYTES).hexdigest()


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
