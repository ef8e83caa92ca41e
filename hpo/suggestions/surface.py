"""Surface: what a model of results predicts at the largest resource, over all configurations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpo.suggestions.observation import Observation, scores_of
from hpo.suggestions.process import Process
from hpo.suggestions.space import Space

MOST_POINTS = 140
"""Observations that a model learns from, those of the largest resource first: its time grows with their cube."""


class Surface:
    """A Gaussian process that learned the ranks of results over configuration and resource, as normal scores.

    Args:
        space: of the configurations.
        observations: what was seen, at least one.
        max_resource: units of a trial that runs to the end.
        maximize: whether larger values are better; of scores, they are.
        scales: of the process, out of another surface of the same space; None: the likeliest.
    """

    def __init__(
        self,
        space: Space,
        observations: Sequence[Observation],
        *,
        max_resource: int,
        maximize: bool,
        scales: NDArray[Any] | None = None,
    ) -> None:
        self._space = space
        scores = scores_of(observations, maximize=maximize)
        self.learned = tuple(_kept(observations, scores))
        """The places of the observations that it learned from."""
        self.points: NDArray[Any] = np.array([space.point(observations[i].hyperparameters) for i in self.learned])
        """Their configurations, shape (n, sides)."""
        share = _share([observations[i].resource for i in self.learned], max_resource)
        features = np.column_stack([space.features(self.points), share])
        self._process = Process(features, scores[[*self.learned]], scales)

    @property
    def scales(self) -> NDArray[Any]:
        """See `Process.scales`."""
        return self._process.scales

    @property
    def noise(self) -> float:
        """See `Process.noise`."""
        return self._process.noise

    def believing(self, points: NDArray[Any]) -> None:
        """See `Process.believing`, at the largest resource."""
        self._process.believing(self._at_the_end(points))

    def predict(self, points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and standard deviation of the scores of configurations at the largest resource, without noise.

        Args:
            points: shape (n, sides).

        Returns:
            Two arrays of shape (n,).
        """
        return self._process.predict(self._at_the_end(points))

    def drawn(self, points: NDArray[Any], normal: NDArray[Any]) -> NDArray[Any]:
        """See `Process.drawn`, at the largest resource."""
        return self._process.drawn(self._at_the_end(points), normal)

    def left_out(self, groups: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `Process.left_out`, of the observations that it learned from, in their order."""
        return self._process.left_out(np.asarray(groups))

    def _at_the_end(self, points: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([self._space.features(points), np.ones(len(points))])


def _kept(observations: Sequence[Observation], scores: NDArray[Any]) -> list[int]:
    """The observations that a model learns from: of the largest resource first, then the job's own, then the best.

    With the first ones instead of the best, a large job would learn nothing new behind `MOST_POINTS`.
    """
    resources = np.array([each.resource for each in observations])
    others = np.array([each.job != "" for each in observations])
    kept: list[int] = np.lexsort((-scores, others, -resources))[:MOST_POINTS].tolist()
    return kept


def _share(resources: Sequence[int], max_resource: int) -> NDArray[Any]:
    """Resource as a side of the cube: its logarithm, so that each rung lies as far from the next."""
    longest = math.log(max(2, max_resource))  # Of an earlier job, trials may have been longer.
    return np.array([min(1.0, math.log(max(1, resource)) / longest) for resource in resources])
