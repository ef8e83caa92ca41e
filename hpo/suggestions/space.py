"""The space of a job's configurations, as points of a unit cube."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpo.ranges import CategoricalParameter, ParameterRange, Scalar, parents_first, present

ABSENT = 0.5
"""The position of a hyperparameter that is not there: one for all of them, in the middle of its side."""


class Space:
    """The ranges of a job as a unit cube, a side a range; points and hyperparameters turn into one another.

    A hyperparameter whose condition is not met lies in the middle of its side, and a column tells a model of it.

    Args:
        ranges: a range a tuned hyperparameter.
    """

    def __init__(self, ranges: Mapping[str, ParameterRange]) -> None:
        self._ranges = dict(sorted(ranges.items()))  # The order in which a space was written says nothing.
        self._column = {name: column for column, name in enumerate(self._ranges)}

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
        there = set(present(self._ranges, hyperparameters))
        absent = {name for name, side in self._ranges.items() if side.when and name not in there & {*hyperparameters}}
        return np.array(
            [ABSENT if name in absent else side.position(hyperparameters[name]) for name, side in self._ranges.items()]
        )

    def hyperparameters(self, point: Sequence[float] | NDArray[Any]) -> dict[str, Scalar]:
        """The configuration at a point of the cube."""
        values = {name: side.at(float(x)) for (name, side), x in zip(self._ranges.items(), point, strict=True)}
        return {name: values[name] for name in present(self._ranges, values)}

    def features(self, points: NDArray[Any]) -> NDArray[Any]:
        """What a model reads of points: numbers as they lie, a column each value of a categorical range.

        Of a hyperparameter with a condition, a category that is not there has no column of its own, and a number
        one more column, which says whether it is there.

        Args:
            points: shape (n, sides).

        Returns:
            Shape (n, columns).
        """
        columns = []
        there = self._there(points)
        for (name, side), x in zip(self._ranges.items(), points.T, strict=True):
            if isinstance(side, CategoricalParameter):
                # Half of a side apart from one another: two values differ as much as numbers of a range may.
                place = np.array([side.index(float(value)) for value in x])
                columns.append((place[:, None] == np.arange(len(side.values))) * 0.5 * there[name][:, None])
            else:
                columns.append(np.where(there[name], x, ABSENT)[:, None])
                if side.when:
                    columns.append(there[name][:, None] * 0.5)
        return np.hstack(columns)

    def _there(self, points: NDArray[Any]) -> dict[str, NDArray[np.bool_]]:
        """Of each hyperparameter, at which points it is there, shape (n,)."""
        there: dict[str, NDArray[np.bool_]] = {}
        for name in parents_first(self._ranges):
            there[name] = np.ones(len(points), dtype=bool)
            for other, accepted in self._ranges[name].when.items():
                parent, side = self._ranges[other], points[:, self._column[other]]
                places = {parent.position(value) for value in accepted}
                met = [parent.position(parent.at(float(x))) in places for x in side]
                there[name] &= there[other] & np.array(met, dtype=bool)
        return there

    def nearest(self, points: NDArray[Any]) -> NDArray[Any]:
        """Points moved to where a configuration is: whole numbers lie apart from one another."""
        return np.array([self.point(self.hyperparameters(point)) for point in points])

    def near(self, point: NDArray[Any], spread: float, count: int, stream: np.random.RandomState) -> NDArray[Any]:
        """Points around a point; a value of a categorical range is now and then another.

        A hyperparameter that is not there has any value, for those of them that get it.

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
        there = self._there(point[None, :])
        for column, (name, side) in enumerate(self._ranges.items()):
            if not there[name][0]:
                moved[:, column] = drawn[:, column]
            elif isinstance(side, CategoricalParameter):
                moved[:, column] = np.where(anew[:, column] < spread, drawn[:, column], point[column])
        return moved
