"""Fit of a job's ranges and objective to its trainer: values that it takes, gangs and lengths that they come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange, corners, extremes
from trainers.checking import did_you_mean, is_whole
from trainers.errors import ConfigurationError
from trainers.length import Length
from trainers.metrics import looks_smaller

if TYPE_CHECKING:
    from hpo.strategies import Plan
    from trainers.trainer import Trainer


class TakesValues(Protocol):
    """What of a trainer says which hyperparameters it takes; a job file is checked by less than a trainer."""

    @property
    def resource_names(self) -> tuple[str, ...]:
        """See `Trainer.resource_names`."""

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        """The static ones."""

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`."""


def check_objective(name: str, reported: Sequence[str] | None) -> None:
    """Refuses an objective that the trainer does not report, where that is known: `reported` is not None.

    Raises:
        ConfigurationError: naming what is reported, and the nearest of it.
    """
    if reported is None or name in reported:
        return
    channel = name.partition(":")[0]
    if reported and all(each.startswith("train:") for each in reported) and channel != "train":
        raise ConfigurationError(
            f"objective_metric_name {name!r} is not reported, since there is no channel {channel!r}; give a channel "
            f"{channel!r} to fit(), or {reported[0]!r}"
        )
    raise ConfigurationError(
        f"objective_metric_name {name!r} is not reported; the trainer reports {', '.join(reported)}"
        + did_you_mean(name, reported)
    )


def direction_warnings(name: str, objective_type: str, *, smaller: bool | None) -> list[str]:
    """Warnings about a job that looks for the worst trial.

    Args:
        name: the objective.
        objective_type: "Maximize" or "Minimize".
        smaller: see `Trainer.smaller_is_better`; None has the metric's name tell, and the warning say that it may err.
    """
    sure = smaller is not None
    smaller = smaller if sure else looks_smaller(name)
    if smaller is None or smaller == (objective_type == "Minimize"):
        return []
    better, right = ("smaller", "Minimize") if smaller else ("greater", "Maximize")
    known = f"of {name} the {better} value is the better one: the job"
    guessed = f"{name} looks like a metric of which the {better} value is the better one: if it is one, the job"
    return [
        f"objective_type is {objective_type!r}, and {known if sure else guessed} looks for the worst trial; give "
        f"objective_type {right!r}"
    ]


def check_trainer_ranges(estimator: TakesValues, ranges: Mapping[str, ParameterRange]) -> None:
    """Refuses ranges that hold values which the trainer does.

    An end that only the end itself is wrong at is let pass where values between are drawn: nobody draws it.

    Args:
        estimator: says what it takes.
        ranges: of the form that `check_ranges` and `check_conditions` want.

    Raises:
        ConfigurationError: naming the range and its wrong value, or what is wrong without any range.
    """
    alone = _refusal(estimator, {})
    for name, bounds in ranges.items():
        if name in estimator.resource_names:
            _check_length(name, bounds)
        for value, inside in extremes(bounds):
            error = _refusal(estimator, {name: value})
            if error and (inside is None or _refusal(estimator, {name: inside})):
                if str(error) == str(alone):
                    raise error
                raise ConfigurationError(f"hyperparameter_ranges[{name!r}] is {bounds!r}: {error}") from error
    for together in corners(ranges):
        if error := _refusal(estimator, together):
            raise ConfigurationError(
                f"hyperparameter_ranges {', '.join(map(repr, together))} do not go together: {error}"
            )


def gang_sizes(estimator: Trainer, ranges: Mapping[str, ParameterRange]) -> tuple[int, int]:
    """Workers of the smallest and of the largest gang that a job may need; where ranges decide, their ends do."""
    sizes = [estimator.workers_for(estimator.hyperparameters)]
    for choose in (min, max):
        values = dict(estimator.hyperparameters)
        for name, bounds in ranges.items():
            ends = [value for value, _ in extremes(bounds)]
            values[name] = choose(ends, key=lambda value: estimator.workers_for({**values, name: value}))
        sizes.append(estimator.workers_for(values))
    return min(sizes), max(sizes)


def longest(lengths: Iterable[Length], ranges: Mapping[str, ParameterRange], static: Mapping[str, Any]) -> int | None:
    """Units of the longest trial where the strategy does not say.

    Args:
        lengths: see `Trainer.lengths`.
        ranges: the tuned ones.
        static: the trainer's own hyperparameters.
    """
    of_each = [_longest(length, ranges, static) for length in lengths]
    return None if None in of_each else max(units for units in of_each if units is not None)


def _longest(length: Length, ranges: Mapping[str, ParameterRange], static: Mapping[str, Any]) -> int | None:
    """Units of the longest trial of one kind of training, by the first of its hyperparameters that there is."""
    for name in length.names:
        match ranges.get(name, static.get(name)):
            case IntegerParameter() as bounds:
                values: list[Any] = [bounds.max_value]
            case CategoricalParameter() as bounds:
                values = list(bounds.values)
            case value:
                values = [value]
        units = [length.in_units(name, value) for value in values if value is not None]
        if known := [each for each in units if each is not None]:
            return max(known)
    return length.units


def inert_lengths(
    length: Length,
    ranges: Mapping[str, ParameterRange],
    static: Mapping[str, Any],
    rationed_by: str,
    max_resource: int,
) -> list[str]:
    """Warnings about tuned lengths that change nothing, or less than they seem to.

    Args:
        length: the hyperparameters that say how long a trial trains, the one that counts first.
        ranges: the tuned ones.
        static: the trainer's own hyperparameters.
        rationed_by: the strategy, where it says how long each trial trains; empty where it does not.
        max_resource: units of a trial that runs to the end.
    """
    names = length.names
    tuned = [name for name in names if name in ranges]
    if rationed_by and length.received:
        return [
            f"{name} is tuned: {rationed_by} trains a trial until its rungs, at most {max_resource} units, and of a "
            "program that ends before, the last values count on"
            for name in tuned
        ]
    if rationed_by:
        return [
            f"{name} is tuned and has no effect: {rationed_by} trains until its rungs, at most {max_resource} units; "
            f"leave {name} out of the ranges"
            for name in tuned
        ]
    counts = next((name for name in names if name in ranges or static.get(name) is not None), None)
    told = f"tuned as {counts}" if counts in ranges else f"static {counts}={static.get(counts or '')}"
    effect = "says nothing of the length" if length.received else "has no effect"
    remedy = "name the right one as the trainer's length" if length.received else "leave one of the two out"
    return [f"{name} is tuned and {effect}: {told} goes before it; {remedy}" for name in tuned if name != counts]


def pause_warnings(obstacle: str, plan: Plan, pausing: str, *, beyond_plan: bool, stands: bool) -> list[str]:
    """Warnings about trials that are paused and may have to begin again, with what that costs as far as it is known.

    Args:
        obstacle: see `Trainer.pause_obstacle`.
        plan: the brackets of the job.
        pausing: what pauses trials, if something does.
        beyond_plan: whether it does so elsewhere than at the plan's rungs.
        stands: whether there is no such obstacle with a scheduler that stops trials and pauses none.
    """
    once = plan.resource
    again = sum(rung * size for each in plan.brackets for rung, size in zip(each.rungs, each.sizes, strict=True))
    if not obstacle or (once == again and not beyond_plan):
        return []
    costs = f", up to {again} units of training for the {once} of the plan" if again > once else ""
    asha = ", or scheduler 'ray.tune.schedulers:ASHAScheduler', which stops trials and pauses none" if stands else ""
    return [
        f"{pausing} pauses trials{costs}: {obstacle}, or give strategy 'Random', or 'Bayesian' with "
        f"early_stopping_type 'Off', which pause none and train {plan.full_resource} units{asha}"
    ]


def _check_length(name: str, bounds: ParameterRange) -> None:
    values = bounds.values if isinstance(bounds, CategoricalParameter) else [bounds.min_value]
    if bounds.when:
        raise ConfigurationError(
            f"hyperparameter_ranges[{name!r}] is {bounds!r}, and says how long every trial trains; leave its condition "
            "out"
        )
    if not isinstance(bounds, IntegerParameter | CategoricalParameter) or not all(is_whole(each, 1) for each in values):
        raise ConfigurationError(
            f"hyperparameter_ranges[{name!r}] is {bounds!r}, and says how long a trial trains; give an "
            "IntegerParameter with a min_value of 1 or more"
        )


def _refusal(estimator: TakesValues, values: Mapping[str, Any]) -> ConfigurationError | None:
    try:
        estimator.check({**estimator.hyperparameters, **values})
    except ConfigurationError as error:
        return error
    return None
