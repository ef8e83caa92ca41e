"""The next configuration to try: the one of the greatest expected improvement at the largest resource."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from hpo.ranges import Scalar
from hpo.suggestions.observation import Observation, scores_of
from hpo.suggestions.process import Process
from hpo.suggestions.space import Space

FEWEST_TRIALS = 4
"""Trials that have to be seen before a model is asked."""

MOST_POINTS = 140
"""Observations that a model learns from, those of the largest resource first: its time grows with their cube."""

ANYWHERE, AROUND = 700, 100
"""Candidates drawn from the whole space, and around each of the best configurations."""

FINALISTS = 64
"""Candidates that are moved to where a configuration is, and looked at again: for all of them it took two thirds of the
time of a suggestion.
"""

_one_at_a_time = Lock()


def propose(
    space: Space,
    observations: Sequence[Observation],
    *,
    begun: Sequence[dict[str, Scalar]] = (),
    max_resource: int,
    maximize: bool,
    stream: np.random.RandomState,
    scales: NDArray[Any] | None = None,
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
        scales: of the process, out of `scales_of`; None: those that are likeliest for these observations.
    """
    # Sums of several threads differ in their last digits, and with them the choice of two that are nearly equal. The
    # limit is the process's: of two jobs in it, the one that ends first would lift the other's.
    with _one_at_a_time, threadpool_limits(1, user_api="blas"):
        return _propose(space, observations, begun, max_resource, maximize, stream, scales)


def scales_of(space: Space, observations: Sequence[Observation], *, max_resource: int, maximize: bool) -> NDArray[Any]:
    """The likeliest scales of a process of these observations: most of the time that a suggestion takes.

    Args:
        space: of the configurations.
        observations: what was seen, at least one.
        max_resource: units of a trial that runs to the end.
        maximize: whether larger values are better.
    """
    with _one_at_a_time, threadpool_limits(1, user_api="blas"):
        return _process(space, observations, max_resource, maximize, None)[0].scales


def _process(
    space: Space, observations: Sequence[Observation], max_resource: int, maximize: bool, scales: NDArray[Any] | None
) -> tuple[Process, NDArray[Any]]:
    """A process of the observations, and the points that it learned from."""
    scores = scores_of(observations, maximize=maximize)
    kept = _kept(observations, scores)
    points = np.array([space.point(observations[i].hyperparameters) for i in kept])
    share = _share([observations[i].resource for i in kept], max_resource)
    return Process(np.column_stack([space.features(points), share]), scores[kept], scales), points


def _propose(
    space: Space,
    observations: Sequence[Observation],
    begun: Sequence[dict[str, Scalar]],
    max_resource: int,
    maximize: bool,
    stream: np.random.RandomState,
    scales: NDArray[Any] | None,
) -> dict[str, Scalar]:
    process, points = _process(space, observations, max_resource, maximize, scales)

    def at_the_end(points: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([space.features(points), np.ones(len(points))])

    pending = np.array([space.point(each) for each in begun]).reshape(-1, space.sides)
    if begun:
        process.believing(at_the_end(pending))
    tried = np.unique(points, axis=0)
    believed, _ = process.predict(at_the_end(tried))
    best = tried[np.argsort(-believed, kind="stable")]

    def improvement(points: NDArray[Any]) -> NDArray[Any]:
        mean, deviation = process.predict(at_the_end(points))
        gain = mean - believed.max()
        expected: NDArray[Any] = gain * norm.cdf(gain / deviation) + deviation * norm.pdf(gain / deviation)
        return expected

    candidates = _candidates(space, best, stream)
    candidates = candidates[np.argsort(-improvement(candidates), kind="stable")]
    finalists = _untried(space, candidates, np.vstack([points, pending]))
    return space.hyperparameters(finalists[int(np.argmax(improvement(finalists)))])


def _kept(observations: Sequence[Observation], scores: NDArray[Any]) -> NDArray[Any]:
    """The observations that a model learns from: of the largest resource first, then the job's own, then the best.

    With the first ones instead of the best, a large job would learn nothing new behind `MOST_POINTS`.
    """
    resources = np.array([each.resource for each in observations])
    others = np.array([each.job != "" for each in observations])
    return np.lexsort((-scores, others, -resources))[:MOST_POINTS]


def _share(resources: Sequence[int], max_resource: int) -> NDArray[Any]:
    """Resource as a side of the cube: its logarithm, so that each rung lies as far from the next."""
    longest = math.log(max(2, max_resource))  # Of an earlier job, trials may have been longer.
    return np.array([min(1.0, math.log(max(1, resource)) / longest) for resource in resources])


def _candidates(space: Space, best: NDArray[Any], stream: np.random.RandomState) -> NDArray[Any]:
    """Configurations to choose from: from everywhere, and from around the best ones, near and nearer."""
    drawn = [stream.random_sample((ANYWHERE, space.sides))]
    for spread in (0.1, 0.03):
        drawn += [space.near(point, spread, AROUND // 2, stream) for point in best[:3]]
    return np.vstack(drawn)


def _untried(space: Space, candidates: NDArray[Any], tried: NDArray[Any]) -> NDArray[Any]:
    """The first candidates that were not tried, moved to where a configuration is; all where each was, as of a few."""
    before = set(map(bytes, tried))
    for first in (candidates[:FINALISTS], candidates):
        moved = space.nearest(first)
        if any(new := [bytes(point) not in before for point in moved]):
            return moved[new]
    return moved
