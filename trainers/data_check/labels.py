"""Labels in one pass: classes and their balance, or the spread of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST_CLASSES = 100
"""More values than that, or fractions among them, are numbers and not classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSummary:
    """What the labels are.

    Args:
        rows: how many labels.
        classes: rows by class, in the order of classes; empty where labels are numbers.
        least: the least label.
        greatest: the greatest.
        mean: of all.
        deviation: the standard deviation.
    """

    rows: int
    classes: dict[float, int] = field(default_factory=dict)
    least: float
    greatest: float
    mean: float
    deviation: float

    def shares(self) -> dict[float, float]:
        """Each class's share of the rows."""
        return {label: rows / self.rows for label, rows in self.classes.items()}


class LabelScan:
    """Adds up blocks of labels; `summary` tells of all of them."""

    def __init__(self) -> None:
        self._counts: dict[float, int] | None = {}
        self._rows = 0
        self._sum = self._squares = 0.0
        self._ends = math.inf, -math.inf

    def add(self, labels: NDArray[np.float32]) -> None:
        """Takes a block."""
        if not len(labels):
            return
        exact = labels.astype(np.float64)
        if not self._rows:
            self._about = float(exact[0])  # Sums of what is near 0 lose no digits.
        self._rows += len(labels)
        self._sum += float((exact - self._about).sum())
        self._squares += float(((exact - self._about) ** 2).sum())
        self._ends = min(self._ends[0], float(exact.min())), max(self._ends[1], float(exact.max()))
        if self._counts is None:
            return
        values, counts = np.unique(exact, return_counts=True)
        if len(values) > MOST_CLASSES or (values != np.floor(values)).any():
            self._counts = None
            return
        for value, rows in zip(values.tolist(), counts.tolist(), strict=True):
            self._counts[value] = self._counts.get(value, 0) + rows
        if len(self._counts) > MOST_CLASSES:
            self._counts = None

    def summary(self) -> LabelSummary:
        """Of all that came."""
        offset = self._sum / self._rows
        return LabelSummary(
            rows=self._rows,
            classes=dict(sorted((self._counts or {}).items())),
            least=self._ends[0],
            greatest=self._ends[1],
            mean=self._about + offset,
            deviation=math.sqrt(max(0.0, self._squares / self._rows - offset**2)),
        )
