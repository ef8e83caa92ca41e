"""Rows of one worker a block at a time, none larger than asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from trainers.channels.rows import QID
from trainers.channels.sparse import is_sparse, stacked
from trainers.channels.table import Table

_CELL_BYTES = 4
_ENTRY_BYTES = 8
"""Of an entry of sparse rows: a number, and its column."""


def in_blocks(pieces: Iterable[Table], most: int) -> Iterator[Table]:
    """Pieces of a shard joined, or cut, to blocks of about so many bytes of features; the last may be smaller.

    Args:
        pieces: in order, with the same columns.
        most: bytes of features, as float32; a row is never cut, and neither is a query, which may be larger.
    """
    held: list[Table] = []
    rows = 0
    for piece in pieces:
        wanted = max(1, int(most // max(1.0, _row_bytes(piece))))
        if QID in piece.said:
            held.append(piece)
            rows += len(piece.labels)
            if rows >= wanted:
                whole, rest = _without_last_query(joined(held))
                yield from (block for block in (whole,) if len(block.labels))
                held, rows = [rest], len(rest.labels)
            continue
        if rows >= wanted:  # Rows of this piece are larger than those before.
            yield joined(held)
            held, rows = [], 0
        start, end = 0, len(piece.labels)
        while rows + end - start >= wanted:
            held.append(_cut(piece, start, start + wanted - rows))
            start += wanted - rows
            yield joined(held)
            held, rows = [], 0
        if start < end:
            held.append(_cut(piece, start, end))
            rows += end - start
    if held:
        yield joined(held)


def joined(pieces: list[Table]) -> Table:
    """Pieces with the same columns, one behind the other."""
    if len(pieces) == 1:
        return pieces[0]
    return Table(
        features=_together([piece.features for piece in pieces]),
        labels=np.concatenate([piece.labels for piece in pieces]),
        feature_names=pieces[0].feature_names,
        said={role: np.concatenate([piece.said[role] for piece in pieces]) for role in pieces[0].said},
    )


def _together(features: list[Any]) -> Any:
    if isinstance(features[0], np.ndarray):
        return np.concatenate(features)
    if is_sparse(features[0]):
        return stacked(features)
    import pandas as pd

    return pd.concat(features, ignore_index=True)


def _row_bytes(piece: Table) -> float:
    if is_sparse(piece.features):
        return float(_ENTRY_BYTES * piece.features.nnz / max(1, len(piece.labels)))
    return float(_CELL_BYTES * piece.features.shape[1])


def _without_last_query(piece: Table) -> tuple[Table, Table]:
    """The rows of all queries but the last, of which more rows may come, and of that."""
    queries = piece.said[QID]
    begins = np.flatnonzero(queries[1:] != queries[:-1]) + 1
    last = int(begins[-1]) if len(begins) else 0
    return _cut(piece, 0, last), _cut(piece, last, len(queries))


def _cut(piece: Table, start: int, end: int) -> Table:
    if (start, end) == (0, len(piece.labels)):
        return piece
    features = piece.features.iloc if hasattr(piece.features, "iloc") else piece.features
    said = {role: numbers[start:end] for role, numbers in piece.said.items()}
    return Table(
        features=features[start:end], labels=piece.labels[start:end], feature_names=piece.feature_names, said=said
    )
