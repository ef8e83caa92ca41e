"""Arguments of a tuner: each of its kind, within its limits, and going together with the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hpo.cost import Prices, Tariff
from hpo.jobs.checks.trainer_fit import check_trainer_ranges
from hpo.jobs.options import one_of
from hpo.ranges import check_conditions, check_ranges
from hpo.strategies import (
    MOST_JOBS,
    STRATEGIES,
    Strategy,
    StrategyConfig,
    TuningJobCompletionCriteriaConfig,
    WarmStartConfig,
    check_strategy,
)
from trainers.checking import check_whole, did_you_mean, is_number, is_whole, shown
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
    strategy = options["strategy"]
    once = isinstance(strategy, Strategy) and strategy.trains_once
    unnamed = isinstance(objective_metric_name, str | None) and not objective_metric_name
    if not (once and unnamed):
        check_objective_name(objective_metric_name, of_channel=estimator.needs_train)
    if not isinstance(ranges, Mapping) or not (ranges or once):
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
    estimator.check_names({**estimator.hyperparameters, **ranges})
    given = ("strategy", "strategy_config", "early_stopping_type", "warm_start_config")
    check_strategy(*(options[name] for name in given))
    kind, kinds = options["objective_type"], ("Maximize", "Minimize")
    if kind not in kinds:
        raise ConfigurationError(f"objective_type is {kind!r}; give {one_of(kind, kinds)}")
    check_whole("random_seed", options["random_seed"], 0)


def check_own_arguments(metric_definitions: object, store: object) -> None:
    """Refuses arguments of a tuner, other than the settings of its job, that are of a wrong type.

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
            raise ConfigurationError(f"{field} is {shown(given)}; give a whole number from 1 to {MOST_JOBS}")
    longest_wait, longest_run = limits.get("max_wait"), limits.get("max_runtime_in_seconds")
    check_whole("max_runtime_in_seconds", longest_run, 1)
    if longest_wait is not None and longest_run is not None and longest_wait < longest_run:
        raise ConfigurationError(
            f"max_wait is {longest_wait} and max_runtime_in_seconds {longest_run}; give a max_wait of as many seconds "
            "or more, since it counts waiting and running together"
        )


def check_no_others(others: Iterable[str], known: Iterable[str], of: str = "HyperparameterTuner") -> None:
    """Refuses arguments of a tuner or a training that it does not have.

    Args:
        others: what was given beside those it has.
        known: those it has.
        of: the class.

    Raises:
        ConfigurationError: naming the first, and the nearest that there is.
    """
    for name in others:
        if name in _RAY_TUNES:
            raise ConfigurationError(f"{name} is Ray Tune's; give it to a HyperparameterTuner as {_RAY_TUNES[name]}")
        raise ConfigurationError(f"a {of} has no argument {name!r}; leave it out" + did_you_mean(name, known))


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
        raise ConfigurationError(f"{field} is {shown(amount)}; give an amount above 0")


def check_objective_name(name: object, *, of_channel: bool = True) -> None:
    """Refuses what cannot name a metric.

    Args:
        name: it.
        of_channel: whether it has to be a channel's, as of trainers that read channels.

    Raises:
        ConfigurationError: naming it.
    """
    if not of_channel and isinstance(name, str) and name:
        return
    # Nested metrics of a function are called "validation/auc".
    if not isinstance(name, str) or not any(all(name.partition(mark)) for mark in ":/"):
        raise ConfigurationError(
            f"objective_metric_name is {name!r}; give a channel and its metric, such as 'validation:auc'"
        )


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
            f"a job named {name!r} is already in {where}; give another name, --name on the command line and job_name "
            f"in Python, or use that job: hpo describe {name} or hpo resume {name}, and attach({name!r}) in Python"
        )
