"""Jobs whose lives are followed: their plans and aims, and the answers of those that nothing happens to."""

from __future__ import annotations

from functools import cache
from typing import Any

from hpo import TuningJobCompletionCriteriaConfig
from hpo.jobs.run import Ended
from hpo.strategies.hyperband import lay_out, run_all
from tests.support.drivers import Disturbance
from tests.support.job_life import World
from tests.support.job_search import Aim
from trainers.errors import DataError

PLANS = [lay_out(9, 1, 9), lay_out(5, 1, 3), run_all(6, 4), run_all(6, 7)]
AIMS: list[dict[str, Any]] = [
    {},
    {"criteria": TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.7)},
    {"criteria": TuningJobCompletionCriteriaConfig(max_number_of_training_jobs_not_improving=3)},
    {"exact": False},
    {"criteria": TuningJobCompletionCriteriaConfig(3, target_objective_metric_value=0.6), "exact": False},
    {"criteria": TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.1), "mode": "min"},
    {"criteria": TuningJobCompletionCriteriaConfig(3), "mode": "min", "best_value": True},
    {"criteria": TuningJobCompletionCriteriaConfig(target_objective_metric_value=2.0), "best_value": True},
    {"learns": True},
    {
        "learns": True,
        "criteria": TuningJobCompletionCriteriaConfig(3, target_objective_metric_value=0.6),
        "mode": "min",
    },
]
POPULATION = 3
"""The plan of a job whose trials take others' checkpoints."""


def aim(plan: int, number: int) -> Aim:
    return Aim(plan=PLANS[plan], **({"population": True} if plan == POPULATION else AIMS[number]))


@cache
def undisturbed(plan: int, number: int, more: tuple[int, ...] = ()) -> dict[str, Any]:
    """The answer of a job that nothing happens to, on one gang, with more trials from its start."""
    world = World(aim=aim(plan, number), parallel=1)
    try:
        for trials in more:
            world.raise_limit("max_jobs", world.max_jobs + trials)
        ended = world.drive(Disturbance())
        assert isinstance(ended, Ended)
        assert ended.status == "Completed"
        world.check()
        return world.answer()
    finally:
        world.close()


def fail() -> None:
    """A removal in vain of a job's files."""
    raise DataError("it is there and cannot be removed")
