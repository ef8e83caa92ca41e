"""The gradient noise scale of a run: over its epochs, and against its rows under way; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScale:
    """McCandlish et al. 2018: the rows at which the noise of a batch's gradient is as large as the gradient itself.

    Args:
        rows: that are under way at once: the batch.
        signal: the squared length of the gradient, after each unit; a mean over seeds, which may be below 0 where next
            to nothing is left of the gradient.
        noise: the same of the trace of the covariance of one example's gradient.
    """

    rows: int
    signal: Sequence[float]
    noise: Sequence[float]

    @classmethod
    def of(cls, signals: Sequence[Sequence[float]], noises: Sequence[Sequence[float]], rows: int) -> NoiseScale | None:
        """That of several seeds; None where nothing was measured.

        Args:
            signals: by seed, what was measured after each unit.
            noises: the same.
            rows: see `NoiseScale`.
        """
        signal, noise = _means(signals), _means(noises)
        return cls(rows=rows, signal=signal, noise=noise) if noise else None

    @property
    def by_unit(self) -> list[float]:
        """The noise scale after each unit, in rows; NaN where there is no gradient left beside the noise."""
        return [_ratio(noise, signal) for noise, signal in zip(self.noise, self.signal, strict=True)]

    @property
    def last(self) -> float:
        """The noise scale in the last unit."""
        return self.by_unit[-1]

    @property
    def against_signal(self) -> float:
        """How many times as large as the squared gradient the noise of a batch was, in the last unit."""
        return self.last / self.rows

    def to_json(self) -> dict[str, Any]:
        """For result.json."""
        return {
            "rows": self.rows,
            "signal": list(self.signal),
            "noise": list(self.noise),
            "scale": self.by_unit,
            "noise_against_signal": self.against_signal,
        }


def scales(ways: Mapping[str, tuple[Sequence[Any], int]]) -> dict[str, NoiseScale]:
    """Of several ways to train: those whose noise was measured.

    Args:
        ways: by name, outcomes with their `signal` and `noise` after each unit, and the rows under way.
    """
    found = {
        name: NoiseScale.of([outcome.signal for outcome in of], [outcome.noise for outcome in of], rows)
        for name, (of, rows) in ways.items()
    }
    return {name: scale for name, scale in found.items() if scale is not None}


def _means(seeds: Sequence[Sequence[float]]) -> list[float]:
    """Over the seeds that came so far, and were finite, unit by unit."""
    longest = max(map(len, seeds), default=0)
    columns = [[of[at] for of in seeds if len(of) > at and math.isfinite(of[at])] for at in range(longest)]
    return [sum(column) / len(column) if column else math.nan for column in columns]


def _ratio(noise: float, signal: float) -> float:
    return noise / signal if signal > 0 else math.nan
