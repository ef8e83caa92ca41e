"""Populations: what Ray Tune's population based training changes, and how often, where a job says nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from ray.tune.schedulers import PopulationBasedTraining, TrialScheduler
from ray.tune.schedulers.pb2 import PB2
from ray.tune.search import ConcurrencyLimiter, Searcher

from hpo.ranges import CategoricalParameter, ParameterRange, Scalar, nearest
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.strategy import Task
from hpo.text import enumerated
from trainers.checking import did_you_mean, is_number
from trainers.errors import ConfigurationError
from trainers.plain import plain_scalar

UNITS = ("training_iteration", RESOURCE)
"""Result keys that count units, and nothing that depends on the clock."""

INTERVALS = 10
"""How often a population looks at its members, over the length of a trial."""


_UNITS = {"perturbation_interval": 0, "burn_in_period": None}
"""Arguments that are numbers of units, with the one of 0 and more that an argument cannot be."""


def defaults(ranges: Mapping[str, ParameterRange], fixed: Collection[str], longest: int) -> dict[str, Any]:
    """Arguments of `PopulationBasedTraining` and `PB2` that were not given: all ranges, in step with each other.

    Args:
        ranges: of the job.
        fixed: hyperparameters that no fork changes.
        longest: units of a trial that runs to its end.
    """
    free = {name: value for name, value in ranges.items() if name not in fixed}
    numeric = {name: value for name, value in free.items() if not isinstance(value, CategoricalParameter)}
    bounds = {name: [value.at(0.0), value.at(1.0)] for name, value in numeric.items()}
    return {
        "perturbation_interval": max(1, longest // INTERVALS),
        "synch": True,
        "hyperparam_mutations": {name: _changes(value) for name, value in free.items()},
        "hyperparam_bounds": {name: [low, high] for name, (low, high) in bounds.items() if low < high},
    }


def check_arguments(kind: type, given: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Refuses arguments of a population that Ray's class would refuse without naming them, or keep in silence.

    Args:
        kind: the scheduler's class, any.
        given: the arguments that a job gives.
        usual: as `defaults` gives them.

    Raises:
        ConfigurationError: naming the argument, its value and what to give.
    """
    if not issubclass(kind, PopulationBasedTraining):
        return
    _check_units(kind.__name__, {name: given[name] for name in _UNITS if name in given})
    argument = _argument(kind)
    if {**usual, **given}.get(argument):
        return
    number = "a hyperparameter that is a number, or give PopulationBasedTraining"
    tuned = number if issubclass(kind, PB2) else "another hyperparameter"
    if usual[argument]:
        raise ConfigurationError(
            f"{argument} of {kind.__name__} is {given[argument]!r}, which changes nothing; leave it out, for all ranges"
        )
    raise ConfigurationError(f"{kind.__name__} can change none of the hyperparameters that are tuned; tune {tuned}")


def check_task(scheduler: PopulationBasedTraining, task: Task) -> None:
    """Refuses a population that does not fit its job: too long an interval, one member, other hyperparameters.

    Args:
        scheduler: one that `check_population` took.
        task: of the job.

    Raises:
        ConfigurationError: naming the argument, its value and what to give.
    """
    inner: Any = scheduler
    name, longest = type(scheduler).__name__, task.plan.max_resource
    for argument in _UNITS:
        if (units := getattr(inner, f"_{argument}")) >= longest:
            raise ConfigurationError(
                f"{argument} of {name} is {units}, and a trial trains {longest} units, so that none would ever go on "
                f"from another's checkpoint; give less than {longest}"
            )
    if task.plan.trials < 2:
        raise ConfigurationError(f"max_jobs is {task.plan.trials}, and {name} compares trials; give 2 or more")
    known = [*task.ranges, *(each for each in task.static_names if each not in task.ranges)]
    argument = _argument(type(scheduler))
    for changed, values in inner._hyperparam_mutations.items():
        where = f"{argument} of {name} has {changed!r}"
        if changed not in known:
            raise ConfigurationError(
                f"{where}, which is no hyperparameter of the job; give some of "
                f"{enumerated([each for each in known if each not in task.fixed_names])}"
                f"{did_you_mean(changed, known)}"
            )
        if isinstance(values, Mapping):
            raise ConfigurationError(f"{where} as {values!r}; give values, since no hyperparameter has parts")
        if isinstance(scheduler, PB2):
            _check_bounds(where, values, task.ranges.get(changed))
        elif isinstance(values, list | tuple):
            _check_values(where, changed, values, task.ranges)


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
    _check_units(name, {argument: getattr(inner, f"_{argument}") for argument in _UNITS})
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


def check_searcher(searcher: Searcher, task: Task) -> None:
    """Refuses a searcher that would wait for reports before it had suggested all of a population.

    Args:
        searcher: any.
        task: of the job.

    Raises:
        ConfigurationError: it limits how many of its trials live at once, to less than all.
    """
    if isinstance(searcher, ConcurrencyLimiter) and searcher.max_concurrent < task.plan.trials:
        raise ConfigurationError(
            f"max_concurrent of searcher ConcurrencyLimiter is {searcher.max_concurrent}, and all {task.plan.trials} "
            "trials of a population begin before one goes on; give the searcher that it limits, since "
            "max_parallel_jobs limits how many train at once"
        )


def _argument(kind: type) -> str:
    """The argument that says what a population changes."""
    return "hyperparam_bounds" if issubclass(kind, PB2) else "hyperparam_mutations"


def _check_units(name: str, given: Mapping[str, Any]) -> None:
    for argument, value in given.items():
        units, least = plain_scalar(value), _UNITS[argument]
        if not is_number(units) or units < 0 or units == least:
            raise ConfigurationError(
                f"{argument} of {name} is {value!r}; give a number of units, "
                + ("0 or more" if least is None else "above 0")
            )


def _check_bounds(where: str, bounds: Any, tuned: ParameterRange | None) -> None:
    if isinstance(tuned, CategoricalParameter):
        raise ConfigurationError(
            f"{where}, whose range is {tuned!r}, and PB2 changes numbers alone; leave it out, or give "
            "PopulationBasedTraining"
        )
    if not (len(bounds) == 2 and all(map(is_number, bounds)) and bounds[0] < bounds[1]):
        raise ConfigurationError(f"{where} as {bounds!r}; give a least and a greatest number, [low, high]")


def _check_values(where: str, name: str, values: Sequence[Any], ranges: Mapping[str, ParameterRange]) -> None:
    if not values:
        raise ConfigurationError(f"{where} as {values!r}; give one value or more")
    for value in values:
        try:
            nearest(ranges, {name: value})
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error


def _changes(value: ParameterRange) -> list[Scalar] | Callable[[], Scalar]:
    return list(value.values) if isinstance(value, CategoricalParameter) else partial(_drawn, value)


def _drawn(value: ParameterRange) -> Scalar:
    """A value of a range, by the global generator of NumPy, which Ray's schedulers draw from."""
    return value.decode(value.domain().sample(None))
