"""Scores over seeds with their standard errors, and their comparison at as many rounds; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hpo.report import with_error

CERTAIN = 2.0
"""A difference counts from so many standard errors on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What one way to train came to, a score a seed.

    Args:
        values: the scores, at least one.
        row_error: the standard error of one score from the rows that it was measured on; None where it is not known.
    """

    values: tuple[float, ...]
    row_error: float | None = None

    @property
    def mean(self) -> float:
        """Over seeds."""
        return statistics.fmean(self.values)

    @property
    def text(self) -> str:
        """The mean and its standard error, for people."""
        return with_error(self.mean, self.error, 4)

    @property
    def spread(self) -> float | None:
        """The standard deviation over seeds; None for a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def seed_error(self) -> float | None:
        """The standard error of the mean over seeds; None for a single one."""
        return None if self.spread is None else self.spread / math.sqrt(len(self.values))

    @property
    def error(self) -> float | None:
        """The standard error that goes beside the mean: over seeds where there are several, else from the rows."""
        return self.row_error if self.seed_error is None else self.seed_error


def configurations(rounds: int, each: int) -> int:
    """How many configurations, run to the end, use as nearly as many rounds as an early-stopping search used.

    Args:
        rounds: that the search used.
        each: rounds of a configuration that runs to the end.
    """
    return max(1, round(rounds / each))


def difference(one: Sequence[float], other: Sequence[float], row_error: float | None = None) -> Scores:
    """One way's scores minus another's, a pair a seed: seeds have easier and harder configurations, pairs do not.

    Args:
        one: a score a seed.
        other: of the same seeds, in the same order.
        row_error: the standard error of one score from its rows, which a single seed falls back on.
    """
    return Scores(values=tuple(a - b for a, b in zip(one, other, strict=True)), row_error=row_error)


def unbeaten(scores: Scores) -> bool:
    """Whether a difference of scores, of which more is better, is known and no gain beyond twice its standard error."""
    return scores.mean <= CERTAIN * (scores.error or 0.0)  # Of a NaN, nothing is said.


def told(scores: Scores) -> str:
    """What may be said of a difference of scores, of which more is better."""
    if math.isnan(scores.mean):
        return "one of the two has no score"
    if scores.error is None:
        return f"{scores.mean:+.4f}"
    which = "its standard error" if scores.seed_error is not None else "the standard error of one score"
    figure = f"{scores.mean:+.4f} ± {scores.error:.4f}"
    if not abs(scores.mean) > CERTAIN * scores.error:
        return f"{figure}, within twice {which}"
    word = "better" if scores.mean > 0 else "worse"
    times = f", {abs(scores.mean) / scores.error:.1f} times {which}" if scores.error else ""
    return f"{figure}, {word}{times}"
