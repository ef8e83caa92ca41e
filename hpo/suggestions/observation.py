"""Observations: values of configurations after so many units, and the targets that a model learns from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hpo.ranges import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The objective of one configuration at one rung.

    Args:
        hyperparameters: the tuned values.
        resource: units trained.
        value: the objective; not finite where training diverged or failed.
        job: an earlier job, among whose values alone this one ranks; empty for the job itself.
    """

    hyperparameters: dict[str, Scalar]
    resource: int
    value: float
    job: str = ""


def scores_of(observations: Sequence[Observation], *, maximize: bool) -> NDArray[Any]:
    """Normal scores of observations, each among those of its job, shape (n,)."""
    scores = np.empty(len(observations))
    for job in {each.job for each in observations}:
        places = [place for place, each in enumerate(observations) if each.job == job]
        scores[places] = normal_scores([observations[place].value for place in places], maximize=maximize)
    return scores


def normal_scores(values: Sequence[float], *, maximize: bool) -> NDArray[Any]:
    """Ranks of values as quantiles of the normal distribution: larger is better, and values that are equal score equal.

    A model of ranks sees neither the scale of an objective nor its outliers. Values that are not finite rank last.

    Source: Blom, "Statistical Estimates and Transformed Beta-Variables" (1958): (rank - 3/8) / (n + 1/4).

    Args:
        values: of an objective, shape (n,).
        maximize: whether larger values are better.

    Returns:
        Scores of shape (n,).
    """
    worst = -math.inf
    signed = np.array([(value if maximize else -value) if math.isfinite(value) else worst for value in values])
    ordered = np.sort(signed)
    first, behind = np.searchsorted(ordered, signed, "left"), np.searchsorted(ordered, signed, "right")
    middle = (first + 1 + behind) / 2
    scores: NDArray[Any] = norm.ppf((middle - 0.375) / (len(signed) + 0.25))
    return scores
