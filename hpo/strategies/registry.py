"""Strategies by name, each with its searcher and its scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hpo.ranges import ParameterRange, Scalar, checked_points
from hpo.strategies.hyperband import MOST_JOBS, Plan, StrategyConfig
from hpo.strategies.ray_tune import RayTuneStrategy, named_code
from hpo.strategies.repeats import configurations_of
from hpo.strategies.strategy import Prepared, Strategy, Task
from hpo.strategies.warm_start import WarmStartConfig
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.process import PLACE, check_outside, load, name_of

STRATEGIES = {
    "Bayesian": "hpo.strategies.model_strategy:BayesianStrategy",
    "Hyperband": "hpo.strategies.hyperband.hyperband_strategy:HyperbandStrategy",
    "Random": "hpo.strategies.random_strategy:RandomStrategy",
    "Grid": "hpo.strategies.grid_strategy:GridStrategy",
    "ASHA": "hpo.strategies.asha.asha_strategy:AshaStrategy",
}
"""The classes of the strategies that are given by a name."""

_DEFAULT = "Bayesian"
"""The tuner's, as SageMaker's class has it."""

RAY_TUNE = "RayTune"
"""What the record calls the strategy of a searcher or a scheduler of Ray Tune's."""

TRAINING = "Training"
"""What the record calls the strategy of a single training."""


def _homes() -> dict[str, str]:
    """The classes of the strategies that the record has by a name."""
    return {
        **STRATEGIES,
        RAY_TUNE: "hpo.strategies.ray_tune.strategy:RayTuneStrategy",
        TRAINING: "hpo.strategies.training_strategy:TrainingStrategy",
    }


OWN_STRATEGY = "strategy"
"""What a strategy of a user's own is called where its code is named."""


def strategy_of(strategy: str | Strategy, config: StrategyConfig | None) -> Strategy:
    """A strategy as a tuner is given it.

    Args:
        strategy: itself, or a name.
        config: the configuration of one that has a name.

    Raises:
        ConfigurationError: naming the field, the value and what is there.
    """
    if isinstance(strategy, str):
        _check_given(strategy)
    name = strategy if isinstance(strategy, str) else name_in_record(strategy)
    if config is not None and name not in config.strategies:
        names = " or ".join(map(repr, config.strategies))
        raise ConfigurationError(f"strategy_config is for the strategy {names}, not for {name!r}; leave it out")
    if not isinstance(strategy, str):
        if config is not None:
            raise ConfigurationError(f"strategy {name!r} has options of its own; leave strategy_config out")
        return strategy
    return strategy_from_json(name, None if config is None else config.to_json())


def check_known(name: str) -> None:
    """Refuses a name that is neither a strategy's nor that of a class, as "module:name"; nothing is imported.

    Raises:
        ConfigurationError: naming it, and the nearest that there is.
    """
    known = ", ".join(STRATEGIES)
    check_outside(name, OWN_STRATEGY, "class")
    if name not in _homes() and not PLACE.fullmatch(name):
        hint = did_you_mean(name, STRATEGIES)
        raise ConfigurationError(f"strategy {name!r} is unknown; give one of {known}{hint}")


def _check_given(name: str) -> None:
    """Refuses the name of a strategy that is not given by its name alone."""
    check_known(name)
    if name == RAY_TUNE:
        raise ConfigurationError(f"strategy is {name!r}; give searcher or scheduler, and leave strategy out")
    if name == TRAINING:
        raise ConfigurationError(f"strategy is {name!r}, which is no search; train with hpo.TrainingJob, or hpo train")


def in_place_of(strategy: str | Strategy, *, searcher: Any, scheduler: Any) -> str | Strategy:
    """The strategy of a tuner: that of its searcher and its scheduler, where it has one.

    Args:
        strategy: as the tuner was given it.
        searcher: likewise; None for none.
        scheduler: likewise.

    Raises:
        ConfigurationError: it was given a strategy, too, or one of the two is none.
    """
    if searcher is None and scheduler is None:
        return strategy
    if strategy != _DEFAULT:
        given = "searcher" if searcher is not None else "scheduler"
        raise ConfigurationError(f"strategy is {strategy!r}, and {given} was given, which takes its place; give one")
    return RayTuneStrategy(searcher=searcher, scheduler=scheduler)


def check_strategy(
    strategy: str | Strategy,
    config: StrategyConfig | None,
    early_stopping_type: str,
    warm_start_config: WarmStartConfig | None = None,
) -> None:
    """Refuses what no job could be started with.

    Raises:
        ConfigurationError: naming the field, the value and what is there.
    """
    made = strategy_of(strategy, config)
    if early_stopping_type not in ("Off", "Auto"):
        raise ConfigurationError(f"early_stopping_type is {early_stopping_type!r}; give 'Off' or 'Auto'")
    if early_stopping_type == "Auto" and made.stops:
        name = name_in_record(made)
        raise ConfigurationError(f"early_stopping_type 'Auto' with {name!r}: {name} stops trials itself; give 'Off'")
    if warm_start_config is not None and not made.learns:
        raise ConfigurationError(
            f"warm_start_config with {name_in_record(made)!r}, which learns nothing from results; leave it out, or "
            "give 'Bayesian', or 'Hyperband' or 'ASHA' with suggestions 'model'"
        )


def check_points(
    points: object, ranges: Mapping[str, ParameterRange], strategy: Strategy, configurations: int
) -> list[dict[str, Scalar]]:
    """The points that a job begins with, in the types of their ranges.

    Raises:
        ConfigurationError: one of them is none, the strategy has no use for any, or there are more than configurations.
    """
    checked = checked_points(ranges, points)
    if checked and strategy.refuses_given:
        raise ConfigurationError(f"points_to_evaluate: {strategy.refuses_given}")
    if len(checked) > configurations:
        raise ConfigurationError(
            f"points_to_evaluate has {len(checked)} points, and the job has {configurations} configurations to try; "
            "give a larger max_jobs, or fewer points"
        )
    return checked


def check_repeats(strategy: Strategy, repeats: int, max_jobs: int | None) -> None:
    """Refuses repeats of configurations that there cannot be.

    Raises:
        ConfigurationError: the strategy compares trials one by one, or `max_jobs` is no multiple of them.
    """
    if repeats > 1 and strategy.refuses_repeats:
        raise ConfigurationError(f"repeats is {repeats} with {name_in_record(strategy)!r}: {strategy.refuses_repeats}")
    if max_jobs is not None and max_jobs % repeats:
        below = max_jobs - max_jobs % repeats
        near = f"{below} or {below + repeats}" if below else f"{repeats}"
        raise ConfigurationError(
            f"max_jobs is {max_jobs}, and repeats {repeats}: each configuration takes {repeats} of its trials; give a "
            f"max_jobs of {near}"
        )


def configurations_for(
    strategy: Strategy, ranges: Mapping[str, ParameterRange], repeats: int, max_jobs: int | None
) -> int:
    """How many configurations a job has, each of which it trains `repeats` times.

    Raises:
        ConfigurationError: there cannot be such repeats, the ranges have other trials, or these are too many.
    """
    check_repeats(strategy, repeats, max_jobs)
    try:
        configurations = strategy.trials(ranges, max_jobs and max_jobs // repeats)
    except ConfigurationError as error:
        if repeats == 1 or max_jobs is None:
            raise
        # The strategy knows configurations, and whoever gave max_jobs counts trials.
        own = strategy.trials(ranges, None)
        raise ConfigurationError(
            f"max_jobs is {max_jobs}, and repeats {repeats}: strategy {name_in_record(strategy)!r} tries "
            f"{own} configurations of these ranges; leave max_jobs out, or give {own * repeats}"
        ) from error
    if configurations * repeats > MOST_JOBS:
        raise ConfigurationError(
            f"repeats is {repeats}, and there are {configurations} configurations: {configurations * repeats} trials, "
            f"and a job has at most {MOST_JOBS}; give fewer repeats or configurations"
        )
    return configurations


def prepared(strategy: Strategy, task: Task) -> Prepared:
    """A strategy made ready for one job; its scheduler gives way to the median rule, and to one that knows of repeats.

    Raises:
        ConfigurationError: there are repeats, and the strategy has a scheduler of its own.
    """
    plan, repeats = configurations_of(task.plan), task.plan.repeats
    made = strategy.prepare(replace(task, plan=plan, parallel=-(-task.parallel // repeats)))
    if not plan.apart and repeats == 1:
        return made
    from hpo.strategies.scheduler import SynchronousHyperBandScheduler  # imports Ray

    if not plan.apart and not isinstance(made.scheduler, SynchronousHyperBandScheduler):
        raise ConfigurationError(
            f"repeats is {repeats} with {name_in_record(strategy)!r}, whose scheduler knows nothing of repeats; "
            "leave repeats out, or use the scheduler of hpo.strategies.at_random"
        )
    scheduler = SynchronousHyperBandScheduler(task.plan, metric=task.metric, mode=task.mode)
    return replace(made, scheduler=scheduler, plan=task.plan)


def name_in_record(strategy: Strategy) -> str:
    """What a record calls a strategy: its name, or "module:name" of a user's own class."""
    own = name_of(type(strategy))
    return next((name for name, home in _homes().items() if home == own), own)


def strategy_from_json(name: str, options: Mapping[str, Any] | None) -> Strategy:
    """A strategy as a record has it, or a job file. A user's own is imported: whoever calls has asked the user first.

    Args:
        name: as `name_in_record` gave it.
        options: as `Strategy.options` gave them.

    Raises:
        ConfigurationError: there is no such strategy, or it does not take these options.
    """
    check_known(name)
    kind = load(_homes().get(name, name), OWN_STRATEGY, "class")
    if not isinstance(kind, type) or not issubclass(kind, Strategy):
        raise ConfigurationError(f"{OWN_STRATEGY} {name!r} is {kind!r}; give a subclass of hpo.strategies.Strategy")
    try:
        return kind(**options or {})
    except TypeError as error:
        raise ConfigurationError(f"options of {OWN_STRATEGY} {name!r} are {options}: {error}") from error


def check_plan(plan: Plan, max_jobs: int, name: str) -> Plan:
    """The brackets that a strategy laid out, or that it let grow, which have to be for as many trials as the job has.

    Args:
        plan: them.
        max_jobs: trials in all.
        name: the strategy's, as `name_in_record` gave it.

    Raises:
        ConfigurationError: there would be trials without a bracket, or a bracket that waits for trials.
    """
    if plan.trials != max_jobs:
        raise ConfigurationError(
            f"{OWN_STRATEGY} {name!r} laid out brackets for {plan.trials} trials, and max_jobs is {max_jobs}; let its "
            "plan() and grown() give brackets whose first sizes add up to max_jobs"
        )
    return plan


def as_given(name: str, options: Mapping[str, Any] | None) -> tuple[str | Strategy, StrategyConfig | None]:
    """A strategy of a record as a tuner takes it: by its name where that says all, and its configuration."""
    options = as_recorded(name, options)
    if name in STRATEGIES and not options:
        return name, None
    if name in StrategyConfig.strategies and "max_resource" in options:
        return name, StrategyConfig.from_json(options)
    return strategy_from_json(name, options), None


def as_recorded(name: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of a record, which an older Warmband may have made: its Hyperband drew configurations at random."""
    before = {"suggestions": "random"} if name == "Hyperband" else {}
    return {**before, **(options or {})}


def strategy_code(name: str, options: Mapping[str, Any] | None) -> dict[str, str]:
    """The user's code that a strategy is or is made of, by what it is called; nothing of it is imported.

    Args:
        name: the strategy's, as a record has it.
        options: likewise.
    """
    if name == RAY_TUNE:
        return named_code(options or {})
    return {OWN_STRATEGY: name} if ":" in name else {}
