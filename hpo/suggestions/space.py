"""The space of a job's configurations, as points of a unit cube."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpo.ranges import CategoricalParameter, ParameterRange, Scalar


class Space:
    """The ranges of a job as a unit cube, a side a range; points and hyperparameters turn into one another.

    Args:
        ranges: a range a tuned hyperparameter.
    """

    def __init__(self, ranges: Mapping[str, ParameterRange]) -> None:
        self._ranges = dict(sorted(ranges.items()))  # The order in which a space was written says nothing.

    @property
    def names(self) -> tuple[str, ...]:
        """The hyperparameter of each side."""
        return tuple(self._ranges)

    @property
    def sides(self) -> int:
        """How many hyperparameters there are."""
        return len(self._ranges)

    def point(self, hyperparameters: Mapping[str, Scalar]) -> NDArray[Any]:
        """Where a configuration lies in the cube, shape (sides,)."""
        return np.array([side.position(hyperparameters[name]) for name, side in self._ranges.items()])

    def hyperparameters(self, point: Sequence[float] | NDArray[Any]) -> dict[str, Scalar]:
        """The configuration at a point of the cube."""
        return {name: side.at(float(x)) for (name, side), x in zip(self._ranges.items(), point, strict=True)}

    def features(self, points: NDArray[Any]) -> NDArray[Any]:
        """What a model reads of points: numbers as they lie, a column each value of a categorical range.

        Args:
            points: shape (n, sides).

        Returns:
            Shape (n, columns).
        """
        columns = []
        for side, x in zip(self._ranges.values(), points.T, strict=True):
            if isinstance(side, CategoricalParameter):
                # Half of a side apart from one another: two values differ as much as numbers of a range may.
                place = np.array([side.index(float(value)) for value in x])
                columns.append((place[:, None] == np.arange(len(side.values))) * 0.5)
            else:
                columns.append(x[:, None])
        return np.hstack(columns)

    def nearest(self, points: NDArray[Any]) -> NDArray[Any]:
        """Points moved to where a configuration is: whole numbers lie apart from one another."""
        return np.array([self.point(self.hyperparameters(point)) for point in points])

    def near(self, point: NDArray[Any], spread: float, count: int, stream: np.random.RandomState) -> NDArray[Any]:
        """Points around a point; a value of a categorical range is now and then another.

        Args:
            point: shape (sides,).
            spread: standard deviation, in sides of the cube; also the chance that a categorical value is drawn anew.
            count: how many.
            stream: what draws.

        Returns:
            Shape (count, sides).
        """
        moved = np.clip(point + spread * stream.standard_normal((count, self.sides)), 0, 1)
        anew = stream.random_sample((count, self.sides))
        drawn = stream.random_sample((count, self.sides))
        for column, side in enumerate(self._ranges.values()):
            if isinstance(side, CategoricalParameter):
                moved[:, column] = np.where(anew[:, column] < spread, drawn[:, column], point[column])
        return moved
