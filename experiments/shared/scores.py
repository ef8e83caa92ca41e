"""What early stopping is measured against: as many rounds on fewer configurations, each run to the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

from experiments.convergence.effects import Scores

CLEAR = 2.0
"""Standard errors from which on a difference is called better or worse."""


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
    return scores.mean <= CLEAR * (scores.error or 0.0)  # Of a NaN, nothing is said.


def told(scores: Scores) -> str:
    """What may be said of a difference of scores, of which more is better."""
    if math.isnan(scores.mean):
        return "one of the two has no score"
    if scores.error is None:
        return f"{scores.mean:+.4f}"
    which = "its standard error" if scores.seed_error is not None else "the standard error of one score"
    figure = f"{scores.mean:+.4f} ± {scores.error:.4f}"
    if not abs(scores.mean) > CLEAR * scores.error:
        return f"{figure}, within twice {which}"
    word = "better" if scores.mean > 0 else "worse"
    times = f", {abs(scores.mean) / scores.error:.1f} times {which}" if scores.error else ""
    return f"{figure}, {word}{times}"
