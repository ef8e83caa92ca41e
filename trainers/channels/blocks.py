"""Rows of one worker a block at a time, none larger than asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from trainers.channels.table import Table

_CELL_BYTES = 4


def in_blocks(pieces: Iterable[Table], most: int) -> Iterator[Table]:
    """Pieces of a shard joined, or cut, to blocks of about so many bytes of features; the last may be smaller.

    Args:
        pieces: in order, with the same columns, of numbers.
        most: bytes of features, as float32; a row is never cut.
    """
    held: list[Table] = []
    rows = 0
    for piece in pieces:
        wanted = max(1, most // max(1, piece.features.shape[1] * _CELL_BYTES))
        start, end = 0, len(piece.labels)
        while rows + end - start >= wanted:
            held.append(_cut(piece, start, start + wanted - rows))
            start += wanted - rows
            yield _joined(held)
            held, rows = [], 0
        if start < end:
            held.append(_cut(piece, start, end))
            rows += end - start
    if held:
        yield _joined(held)


def _cut(piece: Table, start: int, end: int) -> Table:
    if (start, end) == (0, len(piece.labels)):
        return piece
    said = {role: numbers[start:end] for role, numbers in piece.said.items()}
    rows = piece.features[start:end]
    return Table(features=rows, labels=piece.labels[start:end], feature_names=piece.feature_names, said=said)


def _joined(pieces: list[Table]) -> Table:
    if len(pieces) == 1:
        return pieces[0]
    return Table(
        features=np.concatenate([piece.features for piece in pieces]),
        labels=np.concatenate([piece.labels for piece in pieces]),
        feature_names=pieces[0].feature_names,
        said={role: np.concatenate([piece.said[role] for piece in pieces]) for role in pieces[0].said},
    )
