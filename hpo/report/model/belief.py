"""Belief: the search's model of a job, fitted to all that its record has, in the objective's units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpo.ranges import Scalar
from hpo.record import TrialRow
from hpo.report.data import JobData
from hpo.report.pictures import fixed
from hpo.strategies import observations_in
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from hpo.suggestions import Expected, Observation, Quantiles, Space, Surface

Floats = NDArray[np.float64]

FEWEST = 8
"""Configurations below which nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Belief:
    """A Gaussian process that learned from a job's trials, and from the earlier jobs that it began with.

    Args:
        data: the job's.
        space: of its configurations.
        observations: values at the rungs and ends of trials that belong to the space, the job's own first.
        trials: of each of the job's own observations, the trial.
    """

    data: JobData
    space: Space
    observations: Sequence[Observation]
    trials: Sequence[TrialRow]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters among whose values there was a choice."""
        return tuple(name for name, bounds in self.data.ranges.items() if not fixed(bounds))

    @cached_property
    def surface(self) -> Surface:
        """The fitted process."""
        return self.surface_of(range(len(self.observations)))

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The number of each observation's configuration: repeats of one have the same."""
        known: dict[bytes, int] = {}
        points = (self.space.point(each.hyperparameters).tobytes() for each in self.observations)
        return np.array([known.setdefault(point, len(known)) for point in points])

    def surface_of(self, places: Sequence[int]) -> Surface:
        """The process of some of the observations."""
        from hpo.suggestions import Surface  # Imports scikit-learn, for which jobs without a model do not wait.

        seen = [self.observations[place] for place in places]
        return Surface(self.space, seen, max_resource=self.data.max_resource, maximize=self.data.maximize)

    def through(self, *names: str) -> Mapping[str, Scalar] | None:
        """The configuration of the best trial that has hyperparameters of these names; None where none has.

        A hyperparameter that it has not, as one with a condition, is as in the best trial that has it.
        """
        for trial in self.data.ranked():
            if self.data.objective(trial) is not None and all(name in trial.hyperparameters for name in names):
                return {**self._elsewhere, **trial.hyperparameters}
        return None

    @cached_property
    def _elsewhere(self) -> Mapping[str, Scalar]:
        """Of each hyperparameter, the value of the best trial that has it, or the middle of its range."""
        values = {name: bounds.at(0.5) for name, bounds in self.data.ranges.items()}
        for trial in reversed(self.data.ranked()):
            values |= trial.hyperparameters
        return values

    def expected(self, configurations: Sequence[Mapping[str, Scalar]]) -> Expected:
        """What the surface says of configurations that train to the end."""
        return self.in_units(*self.surface.predict(np.array([self.space.point(each) for each in configurations])))

    def in_units(self, scores: NDArray[Any], deviations: NDArray[Any]) -> Expected:
        """Scores as values of the objective, by the quantiles of what the job itself has seen."""
        return self._quantiles.expected(scores, deviations)

    @cached_property
    def _quantiles(self) -> Quantiles:
        from hpo.suggestions import Quantiles

        return Quantiles(self.observations, maximize=self.data.maximize)

    @classmethod
    def of(cls, data: JobData) -> Self | None:
        """A job's; None where too little is there to learn from: configurations, values, or hyperparameters."""
        from hpo.suggestions import Space

        space = Space(data.ranges)
        seen = list(_seen(data, space))
        earlier = [each for each in observations_in(data.job.spec) if _belongs(space, each.hyperparameters)]
        belief = cls(
            data=data,
            space=space,
            observations=(*(observation for _, observation in seen), *earlier),
            trials=tuple(trial for trial, _ in seen),
        )
        tried = {str(each.hyperparameters) for _, each in seen}
        values = {each.value for _, each in seen if math.isfinite(each.value)}
        return belief if len(tried) >= FEWEST and len(values) > 1 and belief.names else None


def evenly(trials: Sequence[TrialRow], most: int) -> list[TrialRow]:
    """So many trials at most, spread evenly over all."""
    return [trials[place] for place in sorted({place * len(trials) // most for place in range(most)})] if trials else []


def _seen(data: JobData, space: Space) -> Iterator[tuple[TrialRow, Observation]]:
    """Trials' values at their rungs and their ends; one that failed or diverged has none at its end."""
    from hpo.suggestions import Observation

    rungs = set(data.rungs)
    for trial in data.trials:
        if not _belongs(space, trial.hyperparameters):
            continue
        lost = trial.status in ("Failed", "Diverged")
        end = None if lost else data.objective(trial)
        values = {
            step: v for step, v in data.compared(trial.trial_id).items() if step in rungs and step < trial.resource
        }
        if lost or (end is not None and trial.resource):
            values[max(1, trial.resource)] = math.nan if end is None else end
        for resource, value in values.items():
            yield trial, Observation(hyperparameters=dict(trial.hyperparameters), resource=resource, value=value)


def _belongs(space: Space, hyperparameters: Mapping[str, Scalar]) -> bool:
    """Whether a configuration has a place in the space."""
    try:
        space.point(hyperparameters)
    except (KeyError, ConfigurationError):
        return False
    return True
