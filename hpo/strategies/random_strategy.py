"""The strategy Random: configurations drawn at random, each trial run to its end."""

from __future__ import annotations

from collections.abc import Mapping

from hpo.ranges import ParameterRange, search_space
from hpo.strategies.hyperband import Plan, run_all
from hpo.strategies.strategy import Prepared, Strategy, Task
from trainers.errors import ConfigurationError
from trainers.length import no_length

MAX_RESOURCE = "max_resource in HyperbandStrategyConfig"
"""The setting of Hyperband and ASHA that says how long a trial trains."""


class RandomStrategy(Strategy):
    """Random search; a trial trains as long as the trainer's hyperparameters say."""

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """See `Strategy.plan`."""
        return run_all(max_jobs, length(units))

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """See `Strategy.grown`: a plan that cuts nothing just gets longer."""
        return run_all(max_jobs, plan.max_resource)

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`."""
        return at_random(task)


class UnknownLengthError(ConfigurationError):
    """Nothing says how long a trial trains; the trainer knows the words for what would.

    Args:
        settings: arguments of the strategy that would say it, in words.
    """

    def __init__(self, *settings: str) -> None:
        self.settings = settings
        super().__init__(no_length((), {}, settings))


def length(units: int | None, *settings: str) -> int:
    """Units of a trial that runs to its end.

    Args:
        units: what says so, if anything does.
        settings: arguments of the strategy that would say it, in words.

    Raises:
        UnknownLengthError: nothing does.
    """
    if units is None:
        raise UnknownLengthError(*settings)
    return units


def at_random(task: Task) -> Prepared:
    """Configurations drawn at random, which train to the rungs of the plan."""
    # Imported here: a job file is checked without waiting for Ray.
    from hpo.strategies.scheduler import SynchronousHyperBandScheduler
    from hpo.strategies.searchers import RandomSearch

    metric, mode = task.metric, task.mode
    return Prepared(
        searcher=RandomSearch(search_space(task.ranges), metric=metric, mode=mode, seed=task.seed),
        scheduler=SynchronousHyperBandScheduler(task.plan, metric=metric, mode=mode),
        plan=task.plan,
    )
