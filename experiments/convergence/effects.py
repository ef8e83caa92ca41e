"""The gap between one worker and a distributed run, and the share of it that each change gives back; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.shared.scores import CERTAIN, Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much of a gap a change gives back.

    Args:
        value: 0 for nothing, 1 for all of it.
        error: its standard error; None where that is not known.
    """

    value: float
    error: float | None

    @property
    def counts(self) -> bool:
        """Whether it is away from nothing by more than its noise."""
        return self.value > CERTAIN * (self.error or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One worker against a distributed run.

    Args:
        alone: the scores of one worker.
        distributed: of the distributed run.
        maximize: whether a larger score is better.
    """

    alone: Scores
    distributed: Scores
    maximize: bool = True

    @property
    def size(self) -> float:
        """How much better one worker is; negative where it is worse."""
        return (self.alone.mean - self.distributed.mean) * (1 if self.maximize else -1)

    @property
    def error(self) -> float:
        """Its standard error, of the seeds and of the rows together; NaN where neither is known.

        Both runs are measured on the same rows, so that the rows' part is less than it is taken for here.
        """
        parts = [
            error
            for scores in (self.alone, self.distributed)
            for error in (scores.seed_error, scores.row_error)
            if error is not None
        ]
        return math.hypot(*parts) if parts else math.nan

    @property
    def is_one(self) -> bool:
        """Whether one worker is better by more than the noise; a noise that is not known hides nothing."""
        return self.size > (0.0 if math.isnan(self.error) else CERTAIN * self.error)

    def share(self, changed: Scores) -> Share:
        """How much of the gap a change gives back.

        Its error comes from the three means' own: between seeds, where there are several. That of the rows is common to
        all three, and counts only where there is one seed.

        Args:
            changed: the scores of the distributed run with one thing changed.
        """
        whole = self.alone.mean - self.distributed.mean
        value = (changed.mean - self.distributed.mean) / whole
        weighed = [(changed, 1.0), (self.alone, -value), (self.distributed, value - 1.0)]
        errors = [scores.error for scores, _ in weighed]
        if any(error is None for error in errors):
            return Share(value=value, error=None)
        parts = [weight * (scores.error or 0.0) / whole for scores, weight in weighed]
        return Share(value=value, error=math.hypot(*parts))


def interact(shares: Sequence[Share]) -> bool:
    """Whether single changes fail to add up to the whole gap, by more than their noise."""
    total = sum(share.value for share in shares)
    noise = math.hypot(*(share.error or 0.0 for share in shares)) if shares else 0.0
    return abs(total - 1.0) > max(CERTAIN * noise, 0.05)
