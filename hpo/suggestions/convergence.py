"""Convergence: whether a search has found nearly all that there is to find, by a model of its results."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpo.ranges import ParameterRange, Scalar
from hpo.ranking import Ranking
from hpo.suggestions.observation import Observation
from hpo.suggestions.one_thread import one_thread
from hpo.suggestions.process import Process
from hpo.suggestions.space import Space
from hpo.suggestions.surface import MOST_POINTS

STANDS_SHARE, STANDS_LEAST = 0.3, 20
"""The best has to have stood for this share of the trials, and for so many at least."""

FEWEST_BEFORE = 10
"""Trials before those: the best of fewer says little."""

NEARLY = 0.01
"""A best that moved by no more than this share of the spread has stood."""

LITTLE = 0.2
"""The share of the spread that may still be missed: an upper bound, which a search seldom comes near to."""

PAUSE_SHARE, PAUSE_LEAST = 0.1, 5
"""A model is asked again after so many more trials, so that asking costs little in a large job."""

LIMIT = 2.0
"""Values are cut off so many spreads away from the best: how bad a bad trial is says nothing of the best ones."""

ANYWHERE, AROUND = 1400, 100
"""Configurations at which it is asked what there may be: from everywhere, and around each of the best three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converged:
    """What a search that has converged may still miss.

    Args:
        since: trials after which the best has stood.
        gain: an upper bound of how much better the objective might still become.
    """

    since: int
    gain: float


class Convergence:
    """Judges by the results of a job's first trials whether it has converged: pure, and the same in every process.

    It has where the best has stood for a while, and a Gaussian process over configuration and resource bounds what may
    be missed by little. Both count in spreads: the distance from the median of the trials' objectives to the best one.

    Source: Makarova et al., "Automatic Termination for Hyperparameter Optimization" (AutoML-Conf 2022), section 4: the
    bound. There, it has to fall below the noise of a cross-validation, which nobody knows here; and while trials differ
    little, its process alone is too sure of itself (`experiments.completion`), so that the best has to stand.

    Args:
        ranges: a range a tuned hyperparameter.
        max_resource: units of a trial that runs to the end.
        ranking: which value is better.
    """

    def __init__(self, ranges: Mapping[str, ParameterRange], *, max_resource: int, ranking: Ranking) -> None:
        self._space = Space(ranges)
        self._max_resource = max_resource
        self._ranking = ranking
        self._tried: dict[int, dict[str, Scalar]] = {}
        self._values: dict[int, dict[int, float]] = defaultdict(dict)
        """The objective by trial and units."""
        self._ends: dict[int, float] = {}
        """The objective of trials that have ended."""
        self._late: list[float] = []
        """Objectives of trials that went on since they were judged."""
        self._looked: list[tuple[int, float]] = []
        """How many trials there were when it was judged, and the best of them."""
        self._asked = 0
        """How many there were when the model was last asked."""

    def begun(self, number: int, hyperparameters: Mapping[str, Scalar]) -> None:
        """A trial was begun with these tuned values."""
        self._tried[number] = dict(hyperparameters)

    def reached(self, number: int, resource: int, value: float) -> None:
        """A trial's objective at a rung."""
        self._values[number][resource] = value

    def ended(self, number: int, resource: int, value: float) -> None:
        """A trial has ended with this objective, after so many units; NaN if it failed or diverged.

        One that counted as ended may have gone on: then with another objective, once more.
        """
        resource, values = max(1, resource), self._values[number]
        # One that is lost behind a rung was good until there.
        values[resource + (resource in values and not math.isfinite(value))] = value
        self._ends[number] = value
        if self._looked and number < self._looked[-1][0]:
            self._late.append(value)

    def judge(self, trials: int) -> Converged | None:
        """Judges by the first so many trials, which have all ended; None where they have not converged.

        Args:
            trials: more than when it was asked before.
        """
        counted, best = self._looked[-1] if self._looked else (0, math.nan)
        for value in [*self._late, *(self._ends[number] for number in range(counted, trials))]:
            best = value if self._ranking.better(value, best) else best
        self._late.clear()
        self._looked.append((trials, best))
        since, then = self._before(trials)
        if since < FEWEST_BEFORE or trials < self._asked + max(PAUSE_LEAST, PAUSE_SHARE * self._asked):
            return None
        worst = -math.inf if self._ranking.maximize else math.inf
        ends = [self._ends[number] for number in range(trials)]
        spread = abs(best - float(np.median([value if math.isfinite(value) else worst for value in ends])))
        # Where half of them are lost or as good as the best, there is no telling.
        if not 0 < spread < math.inf or not abs(best - then) <= NEARLY * spread:
            return None
        self._asked = trials
        bound = self._bound(trials, best, spread)
        return Converged(since=since, gain=bound * spread) if bound <= LITTLE else None

    # ---- within

    def _before(self, trials: int) -> tuple[int, float]:
        """The trials among which the best has to have been already, as they were looked at, and the best of them."""
        most = min(math.floor((1 - STANDS_SHARE) * trials), trials - STANDS_LEAST)
        place = bisect_right(self._looked, most, key=itemgetter(0))
        return self._looked[place - 1] if place else (0, math.nan)

    def _bound(self, trials: int, best: float, spread: float) -> float:
        """An upper bound of how much better than the best tried configuration any may be, in spreads."""
        seen = [
            Observation(hyperparameters=self._tried[number], resource=resource, value=value)
            for number in range(trials)
            for resource, value in sorted(self._values[number].items())
        ]
        seen = sorted(seen, key=lambda each: -each.resource)[:MOST_POINTS]  # The first of equals stay.
        points = np.array([self._space.point(each.hyperparameters) for each in seen])
        sign = 1.0 if self._ranking.maximize else -1.0
        heights = np.array(
            [(each.value - best) * sign / spread if math.isfinite(each.value) else -LIMIT for each in seen]
        ).clip(-LIMIT, LIMIT)
        scale = float(heights.std())
        if scale == 0:
            return 0.0
        length = math.log(max(2, self._max_resource))
        share = np.array([min(1.0, math.log(each.resource) / length) for each in seen])
        with one_thread():
            features = np.column_stack([self._space.features(points), share])
            process = Process(features, (heights - heights.mean()) / scale)
            tried = np.unique(points, axis=0)
            mean, deviation = process.predict(self._at_the_end(tried))
            least = float((mean - deviation).max())
            ahead = tried[np.argsort(-mean, kind="stable")][:3]
            mean, deviation = process.predict(self._at_the_end(self._anywhere(ahead)))
        return max(0.0, float((mean + deviation).max()) - least) * scale

    def _anywhere(self, best: NDArray[Any]) -> NDArray[Any]:
        """Configurations from everywhere and from around the best, always the same for the same best."""
        stream = np.random.RandomState(0)
        drawn = [stream.random_sample((ANYWHERE, self._space.sides))]
        drawn += [self._space.near(point, spread, AROUND, stream) for point in best for spread in (0.1, 0.03)]
        return self._space.nearest(np.vstack(drawn))

    def _at_the_end(self, points: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([self._space.features(points), np.ones(len(points))])
