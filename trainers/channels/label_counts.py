"""Counts of a channel's labels, which the standard error of a score follows from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.channel import Channel
from trainers.channels.files import Files, LibsvmFiles
from trainers.channels.memory import Memory
from trainers.channels.placed import about

MOST_BYTES = 1 << 30
"""Bytes of CSV files that are read for their labels at most. Of more rows, standard errors are small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCounts:
    """How many rows a channel has, and how many of them have the labels 0 and 1."""

    rows: int
    zeros: int
    ones: int

    @classmethod
    def of(cls, labels: Any) -> LabelCounts:
        """Count the labels of an array, or of what makes one."""
        array = np.asarray(labels)
        return cls(rows=array.size, zeros=int((array == 0).sum()), ones=int((array == 1).sum()))

    def __add__(self, other: LabelCounts) -> LabelCounts:
        return LabelCounts(rows=self.rows + other.rows, zeros=self.zeros + other.zeros, ones=self.ones + other.ones)


def count_labels(channel: Channel) -> LabelCounts | None:
    """Count the labels of a channel, in this process, without loading its features where they are in files.

    Args:
        channel: rows in memory, or in files of any file system.

    Returns:
        None for channels of other kinds, and for more than `MOST_BYTES` of CSV.

    Raises:
        DataError: a file is gone or damaged.
    """
    source = channel.source
    if isinstance(source, Files) and source.kind == "csv" and source.text_bytes > MOST_BYTES:
        return None
    if not isinstance(source, Files | LibsvmFiles | Memory):
        return None
    with about(channel.name):
        return sum(map(LabelCounts.of, _labels(channel)), LabelCounts(rows=0, zeros=0, ones=0))


def _labels(channel: Channel) -> Iterator[NDArray[Any]]:
    source = channel.source
    target = source.roles.target if isinstance(source, Files) else None
    if isinstance(source, Memory):
        yield source.labels
    elif not isinstance(source, Files) or target is None or target >= source.own_width:
        # Lines of libsvm's format, and labels that are names of directories, are read with their rows.
        yield from (table.labels for table in channel.pieces())
    else:
        for file in source.files:
            for block in source.columns_alone(file, [target]):
                yield source.preparation.labels(block.column(0), lambda at: at).astype(np.float32)
