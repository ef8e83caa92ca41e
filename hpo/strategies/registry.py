"""Strategies by name, each with its searcher and its scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpo.ranges import ParameterRange, search_space
from hpo.strategies.hyperband import Plan, lay_out, run_all
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

STRATEGIES = ("Hyperband", "Random")
LATER = ("Bayesian", "Grid")


class HyperbandStrategyConfig:
    """Hyperband's resource, in units: one unit is one report, a boosting round or an epoch.

    Args:
        max_resource: units of a trial that runs to the end; trials stop there, whatever `num_round` says.
        min_resource: units before a trial can be stopped.
        reduction_factor: one trial in so many goes on at each rung.

    Raises:
        ConfigurationError: a value is no whole number or too small, or `max_resource` is below `min_resource`.
    """

    def __init__(self, max_resource: int, min_resource: int, *, reduction_factor: int = 3) -> None:
        for field, value, least in (
            ("max_resource", max_resource, 1),
            ("min_resource", min_resource, 1),
            ("reduction_factor", reduction_factor, 2),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigurationError(
                    f"HyperbandStrategyConfig: {field} is {value!r}; give a whole number, {least} or more"
                )
        if max_resource < min_resource:
            raise ConfigurationError(
                f"HyperbandStrategyConfig: max_resource is {max_resource}, less than min_resource, {min_resource}; "
                "give a max_resource that is not below min_resource"
            )
        self.max_resource = max_resource
        self.min_resource = min_resource
        self.reduction_factor = reduction_factor

    def to_input_req(self) -> dict[str, int]:
        """The form that `describe()` gives it in."""
        return {"MinResource": self.min_resource, "MaxResource": self.max_resource}

    def __repr__(self) -> str:
        return (
            f"HyperbandStrategyConfig(max_resource={self.max_resource}, min_resource={self.min_resource}, "
            f"reduction_factor={self.reduction_factor})"
        )


class StrategyConfig:
    """A strategy's own configuration.

    Args:
        hyperband_strategy_config: for the strategy "Hyperband".

    Raises:
        ConfigurationError: it is none.
    """

    def __init__(self, hyperband_strategy_config: HyperbandStrategyConfig) -> None:
        if not isinstance(hyperband_strategy_config, HyperbandStrategyConfig):
            raise ConfigurationError(
                f"StrategyConfig: hyperband_strategy_config is {hyperband_strategy_config!r}; give "
                "HyperbandStrategyConfig(max_resource=..., min_resource=...)"
            )
        self.hyperband_strategy_config = hyperband_strategy_config

    def to_input_req(self) -> dict[str, Any]:
        """The form that `describe()` gives it in."""
        return {"HyperbandStrategyConfig": self.hyperband_strategy_config.to_input_req()}

    def to_json(self) -> dict[str, int]:
        """Everything it was made with, for the record."""
        return dict(vars(self.hyperband_strategy_config))

    @classmethod
    def from_json(cls, state: Mapping[str, int]) -> StrategyConfig:
        """As `to_json` recorded it.

        Raises:
            ConfigurationError: it did not.
        """
        try:
            return cls(HyperbandStrategyConfig(**state))
        except TypeError:
            raise ConfigurationError(
                f"the record of a StrategyConfig is {state!r}; give what to_json() of one returns"
            ) from None

    def __repr__(self) -> str:
        return f"StrategyConfig({self.hyperband_strategy_config!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A strategy made ready for one job."""

    searcher: Searcher
    scheduler: TrialScheduler
    plan: Plan


def check_strategy(strategy: str, config: StrategyConfig | None, early_stopping_type: str) -> None:
    """Refuses what no job could be started with.

    Raises:
        ConfigurationError: naming the field, the value and what is there.
    """
    if strategy in LATER:
        raise ConfigurationError(f"strategy {strategy!r} is not there yet; give one of {', '.join(STRATEGIES)}")
    if strategy not in STRATEGIES:
        hint = did_you_mean(strategy, STRATEGIES)
        raise ConfigurationError(f"strategy {strategy!r} is unknown; give one of {', '.join(STRATEGIES)}{hint}")
    if config is not None and strategy != "Hyperband":
        raise ConfigurationError(f"strategy_config is for the strategy 'Hyperband', not for {strategy!r}; leave it out")
    if early_stopping_type not in ("Off", "Auto"):
        raise ConfigurationError(f"early_stopping_type is {early_stopping_type!r}; give 'Off'")
    if early_stopping_type == "Auto":
        why = "Hyperband stops trials itself" if strategy == "Hyperband" else "it is not there yet"
        raise ConfigurationError(f"early_stopping_type 'Auto' with {strategy!r}: {why}; give 'Off'")


def plan_for(strategy: str, config: StrategyConfig | None, max_jobs: int, units: int | None) -> Plan:
    """The brackets of a job.

    Args:
        strategy: its name.
        config: Hyperband's own, if given.
        max_jobs: trials in all.
        units: how long a trial trains where `config` does not say.

    Raises:
        ConfigurationError: nothing says how long a trial trains, or a value is out of range.
    """
    hyperband = config.hyperband_strategy_config if config else None
    longest = hyperband.max_resource if hyperband else units
    if longest is None:
        raise ConfigurationError(
            "nothing says how long a trial trains: give max_resource in HyperbandStrategyConfig, "
            "or num_round in the trainer's hyperparameters"
        )
    if strategy == "Random":
        return run_all(max_jobs, longest)
    if hyperband is None:
        return lay_out(max_jobs, 1, longest)
    return lay_out(max_jobs, hyperband.min_resource, longest, hyperband.reduction_factor)


def grown(plan: Plan, strategy: str, config: StrategyConfig | None, max_jobs: int) -> Plan:
    """The brackets of a job that is to have more trials than it was planned for.

    Those that there are stay as they are, and what was decided in them stays right: the trials that are added get
    brackets of their own behind them, as a job of so many trials would have. A plan that cuts nothing just gets longer.

    Args:
        plan: the job's so far.
        strategy: its name.
        config: Hyperband's own, if given.
        max_jobs: trials in all, more than the plan's.
    """
    if strategy == "Random":
        return run_all(max_jobs, plan.max_resource)
    more = plan_for(strategy, config, max_jobs - plan.trials, plan.max_resource)
    return Plan(brackets=(*plan.brackets, *more.brackets), max_resource=plan.max_resource)


def stops_nothing(strategy: str, config: StrategyConfig | None, plan: Plan) -> list[str]:
    """The warning that Hyperband has no rung at which it could stop one of several trials.

    Args:
        strategy: its name.
        config: Hyperband's own, if given.
        plan: the job's brackets.
    """
    if strategy != "Hyperband" or plan.trials == 1 or any(len(bracket.rungs) > 1 for bracket in plan.brackets):
        return []
    hyperband = config.hyperband_strategy_config if config else HyperbandStrategyConfig(plan.max_resource, 1)
    least, factor = hyperband.min_resource, hyperband.reduction_factor
    return [
        f"Hyperband stops no trial, all of them train {plan.max_resource} units: max_resource is less than "
        f"reduction_factor times min_resource, {factor} x {least}; give a max_resource of {factor * least} or more, a "
        "smaller min_resource or reduction_factor, or the strategy Random"
    ]


def make_strategy(plan: Plan, ranges: Mapping[str, ParameterRange], *, metric: str, mode: str, seed: int) -> Strategy:
    """The searcher and scheduler of a job whose plan is known."""
    # Imported here: a job file is checked without waiting for Ray.
    from hpo.strategies.random_search import RandomSearch
    from hpo.strategies.scheduler import SynchronousHyperBandScheduler

    searcher = RandomSearch(search_space(ranges), metric=metric, mode=mode, seed=seed)
    return Strategy(
        searcher=searcher, scheduler=SynchronousHyperBandScheduler(plan, metric=metric, mode=mode), plan=plan
    )
