"""The strategy Training: one configuration, trained once to its end, with checkpoints on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpo.ranges import ParameterRange
from hpo.strategies.hyperband import MOST_RESOURCE, Bracket, Plan
from hpo.strategies.random_strategy import length
from hpo.strategies.strategy import Prepared, Strategy, Task
from trainers.checking import check_whole
from trainers.errors import ConfigurationError
from trainers.plain import plain_scalar

CHECKPOINTS = 10
"""Into how many parts checkpoints divide a training where nothing is said."""

MOST_CHECKPOINTS = 10_000
"""The most that a training has; each is a rung of its plan."""

ONE_TRAINING = "a training has one configuration, which is trained once"


class TrainingStrategy(Strategy):
    """A single training in the form of a search: its one trial has rungs at which nothing is compared.

    A rung is a checkpoint from which the training goes on when its workers, or its driver, are lost.

    Args:
        checkpoint_every: units between checkpoints, beside the one at the end; None is a tenth of the training.
    """

    def __init__(self, checkpoint_every: int | None = None) -> None:
        self._every: int | None = plain_scalar(checkpoint_every)
        check_whole("checkpoint_every", self._every, 1)

    trains_once = True

    @property
    def stops_only(self) -> bool:
        """See `Strategy.stops_only`: a program may wait at a checkpoint, as it goes on at once."""
        return True

    @property
    def options(self) -> dict[str, Any]:
        """See `Strategy.options`."""
        return {} if self._every is None else {"checkpoint_every": self._every}

    @property
    def refuses_repeats(self) -> str:
        """See `Strategy.refuses_repeats`."""
        return f"{ONE_TRAINING}; leave repeats out"

    @property
    def refuses_given(self) -> str:
        """See `Strategy.refuses_given`."""
        return f"{ONE_TRAINING}: its values are the trainer's hyperparameters"

    def trials(self, ranges: Mapping[str, ParameterRange], max_jobs: int | None) -> int:
        """See `Strategy.trials`: one, of no ranges."""
        if ranges:
            raise ConfigurationError(
                f"hyperparameter_ranges has {', '.join(map(repr, ranges))}, and {ONE_TRAINING}; give values in the "
                "trainer's hyperparameters, or tune them with a HyperparameterTuner"
            )
        if max_jobs not in (None, 1):
            raise ConfigurationError(f"max_jobs is {max_jobs}, and {ONE_TRAINING}; leave max_jobs out")
        return 1

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """See `Strategy.plan`: one bracket of one trial, a rung a checkpoint."""
        units = length(units)
        if units > MOST_RESOURCE:
            raise ConfigurationError(f"hyperparameters ask for {units} units; give at most {MOST_RESOURCE}")
        every = self._every or -(-units // CHECKPOINTS)
        if units > every * MOST_CHECKPOINTS:
            raise ConfigurationError(
                f"checkpoint_every is {every}, and {units} units would have {-(-units // every)} checkpoints; give "
                f"{-(-units // MOST_CHECKPOINTS)} or more"
            )
        rungs = (*range(every, units, every), units)
        return Plan(brackets=(Bracket(rungs=rungs, sizes=(1,) * len(rungs)),), max_resource=units)

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """See `Strategy.grown`: there is no second trial."""
        raise ConfigurationError(f"max_jobs cannot be raised: {ONE_TRAINING}")

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`."""
        # Imported here: a job file is checked without waiting for Ray.
        from hpo.strategies.scheduler import RESOURCE, SynchronousHyperBandScheduler
        from hpo.strategies.searchers import GridSearch

        # Nothing is compared, and there may be no objective: the units are always there, and finite.
        return Prepared(
            searcher=GridSearch({}, metric=RESOURCE, mode=task.mode),
            scheduler=SynchronousHyperBandScheduler(task.plan, metric=RESOURCE, mode=task.mode),
            plan=task.plan,
        )
