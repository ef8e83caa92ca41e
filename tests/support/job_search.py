"""The aim of a simulated job, and one driver's run of its search, as a driver's process makes it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ray.train import ScalingConfig

from hpo import ContinuousParameter
from hpo.cost.limits import Limits
from hpo.jobs.raising import RAISED
from hpo.jobs.run import Ended, Job
from hpo.jobs.stop_signals import Interrupts
from hpo.observers.progress import Goal, Progress
from hpo.record.store import Store
from hpo.strategies.completion_criteria import TuningJobCompletionCriteriaConfig
from hpo.strategies.hyperband import Plan
from hpo.strategies.random_strategy import RandomStrategy, at_random
from hpo.strategies.registry import prepared
from hpo.strategies.strategy import Prepared, Task
from tests.support.digests import by_digest
from tests.support.drivers import METRIC, WORKERS, Driver, Trainer
from tests.support.populations import populated
from tests.support.simulated import search_of

if TYPE_CHECKING:
    from tests.support.job_life import World

RANGES = {"eta": ContinuousParameter(0.0, 1.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The aim of a job, and the limits that end it.

    Args:
        plan: its brackets.
        criteria: what completes it early.
        mode: which end of the objective is better.
        best_value: compare trials by their best value.
        exact: halted trials go on from any unit; else from their rungs alone.
        learns: what is tried follows from results.
        population: trials take others' checkpoints on their way.
    """

    plan: Plan
    criteria: TuningJobCompletionCriteriaConfig | None = None
    mode: str = "max"
    best_value: bool = False
    exact: bool = True
    learns: bool = False
    population: bool = False


class _Searching(RandomStrategy):
    """The strategy of an aim."""

    def __init__(self, aim: Aim) -> None:
        self._aim = aim

    def prepare(self, task: Task) -> Prepared:
        aim = self._aim
        return (by_digest if aim.learns else populated if aim.population else at_random)(task)


def drive(world: World, driver: Driver) -> Ended:
    """As `hpo.jobs.driver.drive` does."""
    aim, job = world.aim, world.rows()[0]
    plan = Plan.from_json(job.plan)
    trainer = Trainer(scaling=ScalingConfig(num_workers=0), hyperparameters={"objective": "binary:logistic"})
    trainer.driver = driver
    kind = "Maximize" if aim.mode == "max" else "Minimize"
    value = "best" if aim.best_value else "last"
    goal = Goal(job="job", metric=METRIC, objective_type=kind, objective_value=value, plan=plan)
    search = search_of(
        plan,
        parallel=world.parallel,
        max_jobs=job.spec["max_jobs"],
        workers=lambda hyperparameters: WORKERS,
        seed=7,
        repeats=plan.repeats,
        mode=aim.mode,
        best_value=aim.best_value,
        storage_path=str(world.folder),
        exact_from=lambda hyperparameters: aim.exact,
        limits=Limits(
            max_seconds=job.spec.get("max_runtime_in_seconds", math.inf),
            max_wait=job.spec.get("max_wait", math.inf),
        ),
        completion=aim.criteria,
    )

    task = Task(plan=plan, ranges=RANGES, metric=METRIC, mode=aim.mode, seed=search.seed)

    def say(line: str) -> None:
        driver.point()

    with Interrupts(say) as interrupts:
        driver.event(0)
        with Store(world.url) as record:
            if record.job("job").status != "InProgress":
                record.update_job("job", status="InProgress", reason="", ended_at=None)
            raises = record.job("job").spec.get(RAISED, [])
        return Job(
            search=search,
            strategy=prepared(_Searching(aim), task),
            ranges=RANGES,
            estimator=trainer,
            channels={},
            store=world.url,
            watcher=Progress(goal, say),
            raised=raises,
            num_to_keep=2,
            notify=say,
            interrupts=interrupts,
            clock=lambda: world.now,
        ).run()
