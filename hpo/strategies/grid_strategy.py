"""The strategy Grid: every combination of the values of its ranges once, each trial run to its end."""

from __future__ import annotations

from collections.abc import Mapping

from hpo.ranges import ParameterRange, count_combinations
from hpo.strategies.hyperband import MOST_JOBS, Plan, run_all
from hpo.strategies.random_strategy import length
from hpo.strategies.strategy import Prepared, Strategy, Task
from trainers.errors import ConfigurationError


class GridStrategy(Strategy):
    """Grid search; a trial trains as long as the trainer's hyperparameters say.

    Source: Amazon SageMaker AI, "Understand the hyperparameter tuning strategies available", Grid search. There all
    ranges are categorical; here integer ranges and those of steps count, too, and a hyperparameter is left out of the
    combinations in which its condition is not met.
    """

    @property
    def refuses_given(self) -> str:
        """See `Strategy.refuses_given`: a grid has each of its combinations once, and no place for another."""
        return (
            "strategy 'Grid' tries every combination of its ranges once, and no other; leave given values out and put "
            "them into the ranges, or give the strategy Random"
        )

    def trials(self, ranges: Mapping[str, ParameterRange], max_jobs: int | None) -> int:
        """See `Strategy.trials`: the combinations of the ranges, which `max_jobs` has to be where it is given."""
        for name, bounds in ranges.items():
            if bounds.size is None:
                raise ConfigurationError(
                    f"hyperparameter_ranges[{name!r}] is {bounds!r}, which is continuous: it has no end of values for "
                    "strategy 'Grid'; give it a step, or a categorical range of the values to try"
                )
        combinations = count_combinations(ranges, MOST_JOBS)
        if combinations > MOST_JOBS:
            raise ConfigurationError(
                f"the ranges have at least {combinations} combinations for strategy 'Grid', and a job has at most "
                f"{MOST_JOBS} trials; give fewer values, narrower ranges, larger steps, or the strategy Random"
            )
        if max_jobs is not None and max_jobs != combinations:
            raise ConfigurationError(
                f"max_jobs is {max_jobs} with strategy 'Grid', and the ranges have {combinations} combinations; leave "
                f"max_jobs out, or give {combinations}"
            )
        return combinations

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """See `Strategy.plan`."""
        return run_all(self.trials(ranges, max_jobs), length(units))

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """See `Strategy.grown`: there are no more trials than combinations."""
        raise ConfigurationError(
            f"max_jobs cannot be raised: a grid has no more than its {plan.trials} combinations; begin a new job with "
            "larger ranges"
        )

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`."""
        # Imported here: a job file is checked without waiting for Ray.
        from hpo.strategies.scheduler import SynchronousHyperBandScheduler
        from hpo.strategies.searchers import GridSearch

        metric, mode = task.metric, task.mode
        return Prepared(
            searcher=GridSearch(task.ranges, metric=metric, mode=mode),
            scheduler=SynchronousHyperBandScheduler(task.plan, metric=metric, mode=mode),
            plan=task.plan,
        )
