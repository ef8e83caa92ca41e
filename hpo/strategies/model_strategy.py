"""The strategy Bayesian: configurations that a model suggests, each trial run to its end; and the model for others."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hpo.ranges import ParameterRange
from hpo.strategies.hyperband import Plan, run_all
from hpo.strategies.openings import Openings, by_number
from hpo.strategies.random_strategy import length
from hpo.strategies.strategy import Prepared, Strategy, Task

SLACK = 1.5
"""How many times the trials at once a suggestion lags behind. With as many, gangs wait: 16 of them for a fifth of the
time, where trials take as long as one another; with so many more, for 3%.
"""


def lag_for(parallel: int) -> int:
    """Trials between a suggestion and the last that it reads, for so many trials at once.

    Args:
        parallel: trials at once, 1 or more.
    """
    return 1 if parallel == 1 else math.ceil(SLACK * parallel)


class BayesianStrategy(Strategy):
    """Bayesian optimisation; a trial trains as long as the trainer's hyperparameters say.

    The lag of its `History` follows from the trials at once: one after another, each suggestion reads all before it.
    """

    learns = True

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """See `Strategy.plan`."""
        return run_all(max_jobs, length(units))

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """See `Strategy.grown`: a plan that cuts nothing just gets longer."""
        return run_all(max_jobs, plan.max_resource)

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`."""
        return by_model(task, by_number(task.plan, lag_for(task.parallel)))


def by_model(task: Task, openings: Openings, *, fewest: int | None = None) -> Prepared:
    """Configurations that a model suggests, which train to the rungs of the plan.

    Args:
        task: the job's.
        openings: which results each suggestion reads, and waits for; see `hpo.strategies.openings`.
        fewest: trials that have to be seen before a model is asked; None: as many as usual.
    """
    # Imported here: a job file is checked without waiting for Ray.
    from hpo.strategies.scheduler import SynchronousHyperBandScheduler
    from hpo.strategies.searchers import History, ModelSearch
    from hpo.suggestions import FEWEST_TRIALS

    metric, mode = task.metric, task.mode
    return Prepared(
        searcher=ModelSearch(
            task.ranges,
            task.plan,
            metric=metric,
            mode=mode,
            seed=task.seed,
            history=History(task.plan, openings),
            fewest=FEWEST_TRIALS if fewest is None else fewest,
            earlier=task.earlier,
            ahead=not task.in_process,
        ),
        scheduler=SynchronousHyperBandScheduler(task.plan, metric=metric, mode=mode),
        plan=task.plan,
    )
