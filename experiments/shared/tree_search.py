"""Trees as the model of a search, for comparison: many results cost them little more than few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesRegressor

from hpo.ranges import Scalar, decode
from hpo.strategies import ModelSearch
from hpo.suggestions import Observation, Space, most_improving

TREES, LEAF = 100, 3
"""Trees of a forest, and the fewest results that a leaf has: with one, a forest repeats the noise of its results."""


class Forest:
    """Extremely randomised trees that learned the ranks of all results over configuration and resource.

    Ranks are learned as -log(1 - rank), which tells the best apart; the spread over trees stands for what is not known.

    Source: Geurts, Ernst, Wehenkel, "Extremely Randomized Trees" (2006); as a model of a search as in Hutter, Hoos,
    Leyton-Brown, "Sequential Model-Based Optimization for General Algorithm Configuration" (2011), section 4.1.

    Args:
        space: of the configurations.
        observations: what was seen, at least one.
        max_resource: units of a trial that runs to the end.
        maximize: whether larger values are better.
        seed: of the trees.
    """

    def __init__(
        self, space: Space, observations: Sequence[Observation], *, max_resource: int, maximize: bool, seed: int
    ) -> None:
        self._space, self._seed = space, seed
        self.points: NDArray[Any] = np.array([space.point(each.hyperparameters) for each in observations])
        values = np.array([each.value if maximize else -each.value for each in observations])
        ranks = (rankdata(np.where(np.isfinite(values), values, -math.inf)) - 0.5) / len(values)
        self._targets = -np.log(1 - ranks)
        longest = math.log(max(2, max_resource))
        share = [min(1.0, math.log(max(1, each.resource)) / longest) for each in observations]
        self._features = np.column_stack([space.features(self.points), share])
        self._forest = self._fitted()

    def believing(self, points: NDArray[Any]) -> None:
        """See `Predictor.believing`."""
        features = self._at_the_end(points)
        self._targets = np.concatenate([self._targets, self._forest.predict(features)])
        self._features = np.vstack([self._features, features])
        self._forest = self._fitted()

    def predict(self, points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `Predictor.predict`."""
        features = self._at_the_end(points).astype(np.float32)
        told = np.array([tree.tree_.predict(features)[:, 0] for tree in self._forest.estimators_])
        return told.mean(axis=0), np.maximum(told.std(axis=0), 1e-5)

    def _at_the_end(self, points: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([self._space.features(points), np.ones(len(points))])

    def _fitted(self) -> ExtraTreesRegressor:
        forest = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, random_state=self._seed)
        return forest.fit(self._features, self._targets)


class TreeSearch(ModelSearch):
    """Suggests what trees expect most of, in place of a Gaussian process; all else is the same."""

    def compute(self, number: int) -> dict[str, Scalar]:
        """See `ModelSearch.compute`."""
        own, unseen = self._history.read(number)
        seen = [*own, *self._earlier]
        if not any(math.isfinite(each.value) for each in seen):
            return decode(self._ranges, self._random.drawn(number))
        sequence = np.random.SeedSequence(self._seed, spawn_key=(number, 1))
        longest, maximize = self._plan.max_resource, self.mode == "max"
        seed = int(sequence.generate_state(1)[0])
        forest = Forest(self._space, seen, max_resource=longest, maximize=maximize, seed=seed)
        stream = np.random.RandomState(np.random.MT19937(sequence))
        return most_improving(self._space, forest, begun=unseen, stream=stream)
