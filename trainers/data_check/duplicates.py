"""Rows that are there more than once, within a channel and over several.

Rows are compared by hashes of 64 bits: of 40 million, any two that differ look alike with a probability of 1 in 20,000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.data_check.values import Hashes, hash_rows, hash_with


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Rows of a channel that stand in "train", too.

    Args:
        channel: its name.
        rows: how many of its rows have the features of a row of "train".
        alike: those of them with the same label, too.
    """

    channel: str
    rows: int
    alike: int


class RowHashes:
    """Hashes of a channel's rows, of their features alone and with their labels; 16 bytes a row."""

    def __init__(self) -> None:
        self._features: list[Hashes] = []
        self._both: list[Hashes] = []

    def add(self, features: Any, labels: NDArray[np.float32]) -> None:
        """Takes a block of rows."""
        hashes = hash_rows(features)
        self._features.append(hashes)
        self._both.append(hash_with(hashes, labels))

    def sort(self) -> None:
        """Gets ready to answer; no rows come any more."""
        for hashes in (self._features, self._both):
            whole = np.concatenate(hashes)
            whole.sort()
            hashes[:] = [whole]

    @property
    def repeated(self) -> int:
        """Rows that another row before is alike, in features and label."""
        both = self._both[0]
        return len(both) - _distinct(both)

    @property
    def contradictions(self) -> int:
        """Labels beyond the first that rows of the same features have."""
        return _distinct(self._both[0]) - _distinct(self._features[0])

    @property
    def twins(self) -> int:
        """Rows that have the features of another row."""
        features = self._features[0]
        if len(features) < 2:
            return 0
        same = features[1:] == features[:-1]
        return int((np.append(same, False) | np.append(False, same)).sum())

    def overlap(self, channel: str, train: RowHashes) -> Overlap:
        """What this channel, of that name, has in common with "train"."""
        rows, alike = _common(self._features[0], train._features[0]), _common(self._both[0], train._both[0])
        return Overlap(channel=channel, rows=rows, alike=alike)


def _distinct(ordered: Hashes) -> int:
    return int((ordered[1:] != ordered[:-1]).sum()) + 1 if len(ordered) else 0


def _common(mine: Hashes, others: Hashes) -> int:
    if not len(others):
        return 0
    places = np.minimum(np.searchsorted(others, mine), len(others) - 1)
    return int((others[places] == mine).sum())
