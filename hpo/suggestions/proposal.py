"""The next configuration to try: the one of the greatest expected improvement at the largest resource."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hpo.ranges import Scalar
from hpo.suggestions.observation import Observation, scores_of
from hpo.suggestions.one_thread import one_thread
from hpo.suggestions.process import Process
from hpo.suggestions.space import Space

FEWEST_TRIALS = 8
"""Trials that have to be seen before a model is asked: with fewer it is no better than chance."""

MOST_POINTS = 140
"""Observations that a model learns from, those of the largest resource first: its time grows with their cube."""

ANYWHERE, AROUND = 700, 100
"""Candidates drawn from the whole space, and around each of the best configurations."""


def propose(
    space: Space,
    observations: Sequence[Observation],
    *,
    begun: Sequence[dict[str, Scalar]] = (),
    max_resource: int,
    maximize: bool,
    stream: np.random.RandomState,
) -> dict[str, Scalar]:
    """The configuration of the greatest expected improvement at `max_resource`.

    A Gaussian process learns ranks over configuration and resource, as normal scores, and improvement counts against
    the best that it predicts of what was tried. The same arguments give the same configuration.

    Source: Jones, Schonlau, Welch, "Efficient Global Optimization of Expensive Black-Box Functions" (1998), section
    3; over resource as in Klein et al., "Fast Bayesian Optimization of Machine Learning Hyperparameters on Large
    Datasets" (2017), section 4.

    Args:
        space: of the configurations.
        observations: what was seen, at least one.
        begun: configurations whose values are still to come.
        max_resource: units of a trial that runs to the end.
        maximize: whether larger values are better.
        stream: what draws candidates.
    """
    with one_thread():
        return _propose(space, observations, begun, max_resource, maximize, stream)


def _propose(
    space: Space,
    observations: Sequence[Observation],
    begun: Sequence[dict[str, Scalar]],
    max_resource: int,
    maximize: bool,
    stream: np.random.RandomState,
) -> dict[str, Scalar]:
    scores = scores_of(observations, maximize=maximize)
    # The first of equals stay where there are too many: sorted() keeps their order. The job's own are worth most.
    kept = sorted(range(len(observations)), key=lambda i: (-observations[i].resource, observations[i].job != ""))
    kept = kept[:MOST_POINTS]
    points = np.array([space.point(observations[i].hyperparameters) for i in kept])
    share = _share([observations[i].resource for i in kept], max_resource)
    process = Process(np.column_stack([space.features(points), share]), scores[kept])

    def at_the_end(points: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([space.features(points), np.ones(len(points))])

    pending = np.array([space.point(each) for each in begun]).reshape(-1, space.sides)
    if begun:
        process.believing(at_the_end(pending))
    tried = np.unique(points, axis=0)
    believed, _ = process.predict(at_the_end(tried))
    best = tried[np.argsort(-believed, kind="stable")]
    candidates = _others(_candidates(space, best, stream), np.vstack([points, pending]))
    mean, deviation = process.predict(at_the_end(candidates))
    gain = mean - believed.max()
    improvement = gain * norm.cdf(gain / deviation) + deviation * norm.pdf(gain / deviation)
    return space.hyperparameters(candidates[int(np.argmax(improvement))])


def _share(resources: Sequence[int], max_resource: int) -> NDArray[Any]:
    """Resource as a side of the cube: its logarithm, so that each rung lies as far from the next."""
    longest = math.log(max(2, max_resource))  # Of an earlier job, trials may have been longer.
    return np.array([min(1.0, math.log(max(1, resource)) / longest) for resource in resources])


def _candidates(space: Space, best: NDArray[Any], stream: np.random.RandomState) -> NDArray[Any]:
    """Configurations to choose from: from everywhere, and from around the best ones, near and nearer."""
    drawn = [stream.random_sample((ANYWHERE, space.sides))]
    for spread in (0.1, 0.03):
        drawn += [space.near(point, spread, AROUND // 2, stream) for point in best[:3]]
    return space.nearest(np.vstack(drawn))


def _others(candidates: NDArray[Any], tried: NDArray[Any]) -> NDArray[Any]:
    """The candidates that were not tried; all of them where each was, as of a few categories."""
    before = set(map(bytes, tried))
    new = [bytes(point) not in before for point in candidates]
    return candidates[new] if any(new) else candidates
