"""The next configuration to try: the one of the greatest expected improvement at the largest resource."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from hpo.ranges import Scalar
from hpo.suggestions.observation import Observation
from hpo.suggestions.one_thread import one_thread
from hpo.suggestions.space import Space
from hpo.suggestions.surface import Surface

FEWEST_TRIALS = 8
"""Trials that have to be seen before a model is asked, where nothing else is said."""

ANYWHERE, AROUND = 700, 100
"""Candidates drawn from the whole space, and around each of the best configurations."""

FINALISTS = 64
"""Candidates that are moved to where a configuration is, and looked at again: for all of them it took two thirds of the
time of a suggestion.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A configuration to try, and what the model expects of it at the largest resource, in normal scores.

    Args:
        hyperparameters: the configuration.
        score: the mean; 0 is as good as the median of what was seen, and larger is better.
        deviation: its standard deviation.
        spread: that of a value that is measured there, with its noise.
    """

    hyperparameters: dict[str, Scalar]
    score: float
    deviation: float
    spread: float


class Predictor(Protocol):
    """A model of results at the largest resource, as `Surface` is one."""

    points: NDArray[Any]
    """The configurations that it learned from, shape (n, sides)."""

    @property
    def noise(self) -> float:
        """The variance of a value that is measured twice."""

    def believing(self, points: NDArray[Any]) -> None:
        """Takes points whose values are to come at what it predicts of them."""

    def predict(self, points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and standard deviation at points."""


def propose(
    space: Space,
    observations: Sequence[Observation],
    *,
    begun: Sequence[dict[str, Scalar]] = (),
    max_resource: int,
    maximize: bool,
    stream: np.random.RandomState,
    scales: NDArray[Any] | None = None,
) -> Proposal:
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
    with one_thread():
        surface = Surface(space, observations, max_resource=max_resource, maximize=maximize, scales=scales)
        return most_improving(space, surface, begun=begun, stream=stream)


def scales_of(space: Space, observations: Sequence[Observation], *, max_resource: int, maximize: bool) -> NDArray[Any]:
    """The likeliest scales of a process of these observations: most of the time that a suggestion takes.

    Args:
        space: of the configurations.
        observations: what was seen, at least one.
        max_resource: units of a trial that runs to the end.
        maximize: whether larger values are better.
    """
    with one_thread():
        return Surface(space, observations, max_resource=max_resource, maximize=maximize).scales


def most_improving(
    space: Space, surface: Predictor, *, begun: Sequence[dict[str, Scalar]], stream: np.random.RandomState
) -> Proposal:
    """The configuration of the greatest expected improvement on the best that a model predicts of what was tried.

    Args:
        space: of the configurations.
        surface: the model.
        begun: configurations whose values are still to come.
        stream: what draws candidates.
    """
    pending = np.array([space.point(each) for each in begun]).reshape(-1, space.sides)
    if begun:
        surface.believing(pending)
    tried = np.unique(surface.points, axis=0)
    believed, _ = surface.predict(tried)
    best = tried[np.argsort(-believed, kind="stable")]

    def improvement(mean: NDArray[Any], deviation: NDArray[Any]) -> NDArray[Any]:
        gain = mean - believed.max()
        expected: NDArray[Any] = gain * norm.cdf(gain / deviation) + deviation * norm.pdf(gain / deviation)
        return expected

    candidates = _candidates(space, best, stream)
    candidates = candidates[np.argsort(-improvement(*surface.predict(candidates)), kind="stable")]
    finalists = _untried(space, candidates, np.vstack([surface.points, pending]))
    mean, deviation = surface.predict(finalists)
    chosen = int(np.argmax(improvement(mean, deviation)))
    return Proposal(
        hyperparameters=space.hyperparameters(finalists[chosen]),
        score=float(mean[chosen]),
        deviation=float(deviation[chosen]),
        spread=math.hypot(deviation[chosen], math.sqrt(surface.noise)),
    )


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
