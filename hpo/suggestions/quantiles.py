"""Quantiles: scores of a model as values of the objective, by what its job has seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpo.suggestions.observation import Observation, scores_of

WITHIN = 0.8
"""The probability with which a model expects a value within its intervals."""

_QUANTILE = 1.2815515655446004
"""How many standard deviations that is to either side."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expected:
    """What the model expects of configurations: the value that it takes to be as likely exceeded as not, and bounds.

    Args:
        middle: shape (n,).
        low: the lesser bounds of the intervals, shape (n,).
        high: the greater ones.
    """

    middle: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]


class Quantiles:
    """The finite values that a job itself has seen, by their scores; false where it has seen none.

    Args:
        observations: what was seen; those of earlier jobs rank among themselves and have no place here.
        maximize: whether larger values are better.
    """

    def __init__(self, observations: Sequence[Observation], *, maximize: bool) -> None:
        own = {
            float(score): each.value
            for score, each in zip(scores_of(observations, maximize=maximize), observations, strict=True)
            if not each.job and math.isfinite(each.value)
        }
        self._scores = np.array(sorted(own))
        self._values = np.array([own[score] for score in sorted(own)])

    def __bool__(self) -> bool:
        return len(self._values) > 0

    def expected(self, scores: ArrayLike, deviations: ArrayLike) -> Expected:
        """Scores as values: between two that were seen by the line from one to the other, and never beyond the best.

        Args:
            scores: shape (n,).
            deviations: their standard deviations, shape (n,).
        """
        middle, reach = np.asarray(scores), _QUANTILE * np.asarray(deviations)
        ends = [np.interp(middle + sign * reach, self._scores, self._values) for sign in (-1, 1)]
        values = np.interp(middle, self._scores, self._values)
        return Expected(middle=values, low=np.minimum(*ends), high=np.maximum(*ends))
