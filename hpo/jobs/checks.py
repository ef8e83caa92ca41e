"""Checks of a tuner's arguments before anything starts, such as ranges that fit the trainer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hpo.cost import Prices, Tariff
from hpo.jobs.options import one_of
from hpo.ranges import (
    CategoricalParameter,
    IntegerParameter,
    ParameterRange,
    check_conditions,
    check_ranges,
    corners,
    extremes,
)
from hpo.strategies import (
    MOST_JOBS,
    STRATEGIES,
    Strategy,
    StrategyConfig,
    TuningJobCompletionCriteriaConfig,
    WarmStartConfig,
    check_strategy,
)
from trainers.checking import check_whole, did_you_mean, is_number, is_whole
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from trainers.trainer import Trainer

_KINDS: dict[str, tuple[Any, str]] = {
    "strategy": (str | Strategy, f"{' or '.join(map(repr, STRATEGIES))}, or a hpo.strategies.Strategy of your own"),
    "objective_type": (str, "'Maximize' or 'Minimize'"),
    "early_stopping_type": (str, "'Off' or 'Auto'"),
    "strategy_config": (
        StrategyConfig | None,
        "StrategyConfig(HyperbandStrategyConfig(max_resource=..., min_resource=...))",
    ),
    "warm_start_config": (WarmStartConfig | None, "WarmStartConfig('TransferLearning', parents=['an-earlier-job'])"),
    "completion_criteria_config": (TuningJobCompletionCriteriaConfig | None, "TuningJobCompletionCriteriaConfig(...)"),
    "base_tuning_job_name": (str | None, "a string"),
    "estimator_name": (str | None, "a string"),
}


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


_NAME = re.compile(r"[A-Za-z0-9](-*[A-Za-z0-9])*")


_LIMITS = ("max_jobs", "max_parallel_jobs", "max_runtime_in_seconds")
_RAY_TUNES = {
    "search_alg": "searcher, and a scheduler as scheduler",
    "param_space": "hyperparameter_ranges",
    "tune_config": "searcher and scheduler, num_samples as max_jobs, and max_concurrent_trials as max_parallel_jobs",
    "run_config": "base_tuning_job_name and storage_path",
}
"""Arguments of Ray Tune's, and what they are called here."""


def check_arguments(estimator: object, objective_metric_name: object, ranges: object, **options: Any) -> None:
    """Refuses settings of a job that are of another kind than they have to be, and ranges the trainer cannot take.

    Args:
        estimator: a `Trainer`.
        objective_metric_name: "channel:metric".
        ranges: by name of the hyperparameter.
        **options: the other settings, by name.

    Raises:
        ConfigurationError: naming the setting, its value and what to give.
    """
    # Imported here: a job file is checked without waiting for Ray.
    from trainers.trainer import Trainer

    if not isinstance(estimator, Trainer):
        raise ConfigurationError(f"estimator is {estimator!r}; give a trainer, such as XGBoostTrainer(...)")
    check_objective_name(objective_metric_name)
    if not isinstance(ranges, Mapping) or not ranges:
        raise ConfigurationError(
            f"hyperparameter_ranges is {ranges!r}; give a dict with a range for each hyperparameter to "
            "tune, such as {'eta': ContinuousParameter(0.01, 0.3)}, or autotune=True"
        )
    check_limits(**{field: options[field] for field in _LIMITS})
    for field, (kind, remedy) in _KINDS.items():
        if not isinstance(options[field], kind):
            raise ConfigurationError(f"{field} is {options[field]!r}; give {remedy}")
    base = options["base_tuning_job_name"]
    if base is not None and not _NAME.fullmatch(base):
        raise ConfigurationError(
            f"base_tuning_job_name is {base!r}; give letters, digits and hyphens, a letter or digit first and last"
        )
    check_ranges(ranges)
    check_conditions(ranges)
    check_trainer_ranges(estimator, ranges)
    given = ("strategy", "strategy_config", "early_stopping_type", "warm_start_config")
    check_strategy(*(options[name] for name in given))
    kind, kinds = options["objective_type"], ("Maximize", "Minimize")
    if kind not in kinds:
        raise ConfigurationError(f"objective_type is {kind!r}; give {one_of(kind, kinds)}")
    check_whole("random_seed", options["random_seed"], 0)


def check_unused(metric_definitions: object, store: object) -> None:
    """Refuses arguments of a tuner that no setting of a job is made of.

    Args:
        metric_definitions: a list, empty, or None.
        store: a database URL or None.

    Raises:
        ConfigurationError: naming the argument, its value and what to give.
    """
    for field, value, kind, remedy in (
        ("metric_definitions", metric_definitions, list | None, "a list, or leave it out"),
        ("store", store, str | None, "a string"),
    ):
        if not isinstance(value, kind):
            raise ConfigurationError(f"{field} is {value!r}; give {remedy}")
    if metric_definitions:
        raise ConfigurationError(
            "metric_definitions are regular expressions for logs, and trainers report their metrics; leave them out"
        )


def check_limits(**limits: Any) -> None:
    """Refuses limits in trials and seconds that are none, and such as do not go together.

    Args:
        **limits: by the tuner's names for them; what is left out is not checked.

    Raises:
        ConfigurationError: naming the limit, its value and what to give.
    """
    for field in ("max_jobs", "max_parallel_jobs"):
        given = limits.get(field, 1)
        if not is_whole(given, 1, MOST_JOBS) and (given is not None or field == "max_parallel_jobs"):
            raise ConfigurationError(f"{field} is {given!r}; give a whole number from 1 to {MOST_JOBS}")
    longest_wait, longest_run = limits.get("max_wait"), limits.get("max_runtime_in_seconds")
    check_whole("max_runtime_in_seconds", longest_run, 1)
    if longest_wait is not None and longest_run is not None and longest_wait < longest_run:
        raise ConfigurationError(
            f"max_wait is {longest_wait} and max_runtime_in_seconds {longest_run}; give a max_wait of as many seconds "
            "or more, since it counts waiting and running together"
        )


def check_no_others(others: Iterable[str], known: Iterable[str]) -> None:
    """Refuses arguments of a tuner that it does not have.

    Args:
        others: what was given beside those it has.
        known: those it has.

    Raises:
        ConfigurationError: naming the first, and the nearest that there is.
    """
    for name in others:
        if name in _RAY_TUNES:
            raise ConfigurationError(f"{name} is Ray Tune's; give it to a HyperparameterTuner as {_RAY_TUNES[name]}")
        raise ConfigurationError(
            f"a HyperparameterTuner has no argument {name!r}; leave it out" + did_you_mean(name, known)
        )


def trial_name(value: object) -> str | None:
    """The trial that somebody asks for, by its name or as the `BestTrainingJob` of `describe()`; None for the best.

    Raises:
        ConfigurationError: it is neither.
    """
    name = value.get("TrainingJobName", value) if isinstance(value, Mapping) else value
    if name is None or isinstance(name, str):
        return name
    raise ConfigurationError(
        f"best_training_job is {value!r}; give a trial's name, or a dict with it as TrainingJobName, as "
        "describe()['BestTrainingJob'] is one"
    )


def check_not_there_yet(**fields: object) -> None:
    """Refuses arguments of SageMaker's that nothing stands behind yet, where they are not None."""
    for field, value in fields.items():
        if value is not None:
            raise ConfigurationError(f"{field} is not there yet; leave it out")


def check_cost(estimator: Trainer, prices: object = None, max_cost: object = None) -> Tariff | None:
    """Refuses prices that are none, that this trainer's workers do not fit, and a limit that cannot be one.

    Returns:
        What a worker costs; None where there are no prices.

    Raises:
        ConfigurationError: naming the argument, its value and what to give.
    """
    if not isinstance(prices, Prices | None):
        raise ConfigurationError(f"prices is {prices!r}; give hpo.Prices(per_worker_hour=...), or leave it out")
    check_amount("max_cost", max_cost)
    if prices is None and max_cost is not None:
        raise ConfigurationError(f"max_cost is {max_cost!r}, and nothing says what a worker costs; give prices too")
    return None if prices is None else prices.tariff(estimator.worker_resources)


def check_amount(field: str, amount: object) -> None:
    """Refuses what is neither an amount of money nor None.

    Raises:
        ConfigurationError: naming the field, its value and what to give.
    """
    if amount is not None and not (is_number(amount) and amount > 0):
        raise ConfigurationError(f"{field} is {amount!r}; give an amount above 0")


def check_objective_name(name: object) -> None:
    """Refuses what cannot name a metric of a channel."""
    if not isinstance(name, str) or not all(name.partition(":")):
        raise ConfigurationError(
            f"objective_metric_name is {name!r}; give a channel and its metric, such as 'validation:auc'"
        )


def check_objective(name: str, reported: Sequence[str] | None) -> None:
    """Refuses an objective that the trainer does not report, where that is known: `reported` is not None.

    Raises:
        ConfigurationError: naming what is reported, and the nearest of it.
    """
    if reported is None or name in reported:
        return
    if not reported:
        raise ConfigurationError(
            f"objective_metric_name {name!r} is not reported, since only channels beside 'train' are evaluated; "
            f"give a channel {name.partition(':')[0]!r} to fit()"
        )
    raise ConfigurationError(
        f"objective_metric_name {name!r} is not reported; the trainer reports {', '.join(reported)}"
        + did_you_mean(name, reported)
    )


def check_trainer_ranges(estimator: TakesValues, ranges: Mapping[str, ParameterRange]) -> None:
    """Refuses ranges that hold values which the trainer does.

    An end that only the end itself is wrong at is let pass where values between are drawn: nobody draws it.

    Args:
        estimator: says what it takes.
        ranges: of the form that `check_ranges` and `check_conditions` want.

    Raises:
        ConfigurationError: naming the range and its wrong value.
    """
    for name, bounds in ranges.items():
        if name in estimator.resource_names:
            _check_length(name, bounds)
        for value, inside in extremes(bounds):
            error = _refusal(estimator, {name: value})
            if error and (inside is None or _refusal(estimator, {name: inside})):
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


def longest(
    lengths: Iterable[Sequence[str]], ranges: Mapping[str, ParameterRange], static: Mapping[str, Any]
) -> int | None:
    """Units of the longest trial where the strategy does not say.

    Args:
        lengths: see `Trainer.lengths`.
        ranges: the tuned ones.
        static: the trainer's own hyperparameters.
    """
    of_each = [_longest(names, ranges, static) for names in lengths]
    return None if None in of_each else max(units for units in of_each if units is not None)


def _longest(names: Iterable[str], ranges: Mapping[str, ParameterRange], static: Mapping[str, Any]) -> int | None:
    """Units of the longest trial of one kind of training, by the first of these hyperparameters that there is."""
    for name in names:
        match ranges.get(name, static.get(name)):
            case IntegerParameter() as bounds:
                return int(bounds.max_value)
            case CategoricalParameter() as bounds:
                return max(int(value) for value in bounds.values if value is not None)
            case int(units):
                return units
    return None


def inert_lengths(
    names: Sequence[str],
    ranges: Mapping[str, ParameterRange],
    static: Mapping[str, Any],
    rationed_by: str,
    max_resource: int,
) -> list[str]:
    """Warnings about tuned lengths that change nothing.

    Args:
        names: hyperparameters that say how long a trial trains, the one that counts first.
        ranges: the tuned ones.
        static: the trainer's own hyperparameters.
        rationed_by: the strategy, where it says how long each trial trains; empty where it does not.
        max_resource: units of a trial that runs to the end.
    """
    tuned = [name for name in names if name in ranges]
    if rationed_by:
        return [
            f"{name} is tuned and has no effect: {rationed_by} trains until its rungs, at most {max_resource} units; "
            f"leave {name} out of the ranges"
            for name in tuned
        ]
    counts = next((name for name in names if name in ranges or static.get(name) is not None), None)
    told = f"tuned as {counts}" if counts in ranges else f"static {counts}={static.get(counts or '')}"
    return [
        f"{name} is tuned and has no effect: {told} goes before it; leave one of the two out"
        for name in tuned
        if name != counts
    ]


def check_job_name(name: object, longest: int) -> None:
    """Refuses what cannot name a job.

    Raises:
        ConfigurationError: naming it.
    """
    if not isinstance(name, str) or len(name) > longest or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"job_name is {name!r}; give at most {longest} letters, digits and hyphens, a letter or digit first and "
            "last"
        )


def check_name_free(name: str, taken: Iterable[str], where: str) -> None:
    """Refuses the name of a job that is in the record.

    Raises:
        ConfigurationError: naming the job, the record and what to do.
    """
    if name in taken:
        raise ConfigurationError(
            f"a job named {name!r} is already in {where}; give another job_name, or attach({name!r}) to that job"
        )


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
