"""Populations: what Ray Tune's population based training changes, and how often, where a job says nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ray.tune.schedulers import PopulationBasedTraining, TrialScheduler

from hpo.ranges import CategoricalParameter, ParameterRange, Scalar
from hpo.strategies.scheduler import RESOURCE
from trainers.errors import ConfigurationError

UNITS = ("training_iteration", RESOURCE)
"""Result keys that count units, and nothing that depends on the clock."""

INTERVALS = 10
"""How often a population looks at its members, over the length of a trial."""


def defaults(ranges: Mapping[str, ParameterRange], fixed: Collection[str], longest: int) -> dict[str, Any]:
    """Arguments of `PopulationBasedTraining` and `PB2` that were not given: all ranges, in step with each other.

    Args:
        ranges: of the job.
        fixed: hyperparameters that no fork changes.
        longest: units of a trial that runs to its end.
    """
    free = {name: value for name, value in ranges.items() if name not in fixed}
    numeric = {name: value for name, value in free.items() if not isinstance(value, CategoricalParameter)}
    return {
        "perturbation_interval": max(1, longest // INTERVALS),
        "synch": True,
        "hyperparam_mutations": {name: _changes(value) for name, value in free.items()},
        "hyperparam_bounds": {name: [value.at(0.0), value.at(1.0)] for name, value in numeric.items()},
    }


def check_population(scheduler: TrialScheduler, fixed: Collection[str]) -> None:
    """Refuses a population that decides by the clock, or changes what cannot be changed.

    Args:
        scheduler: any.
        fixed: hyperparameters that a trial's checkpoint cannot go on with other values of.

    Raises:
        ConfigurationError: naming it.
    """
    if not isinstance(scheduler, PopulationBasedTraining):
        return
    inner: Any = scheduler
    name = type(scheduler).__name__
    if inner._time_attr not in UNITS:
        raise ConfigurationError(
            f"time_attr of {name} is {inner._time_attr!r}; give {UNITS[0]!r}, which counts units of training: what it "
            "decides by the clock, a job that is resumed would not decide again"
        )
    for changed in inner._hyperparam_mutations:
        if changed in fixed:
            raise ConfigurationError(
                f"{name} changes {changed!r}, and no trial can go on from a checkpoint with another value of it; leave "
                "it out of what is changed, and let each trial have its own for life"
            )


def _changes(value: ParameterRange) -> list[Scalar] | Callable[[], Scalar]:
    return list(value.values) if isinstance(value, CategoricalParameter) else partial(_drawn, value)


def _drawn(value: ParameterRange) -> Scalar:
    """A value of a range, by the global generator of NumPy, which Ray's schedulers draw from."""
    return value.decode(value.domain().sample(None))
