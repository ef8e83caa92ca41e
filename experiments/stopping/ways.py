"""The ways to search: Hyperband with a model and at random, all to the end, and the first of these for equal rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from experiments.shared.scores import configurations
from experiments.stopping.problems import StoppingProblem
from experiments.workloads.empty_searches import NoRecord
from hpo.ranges import decode
from hpo.ranking import Ranking
from hpo.search import Controller, Search, TrialRun, rank_of
from hpo.strategies import Bracket, HyperbandStrategy, Plan, Prepared, Task, at_random, lay_out
from trainers import storage
from trainers.gangs import Gangs

JOBS = 30
RANKING = Ranking(maximize=True)


class Way(StrEnum):
    """How configurations are searched."""

    MODEL = "Hyperband, with a model"
    EQUAL_TO_MODEL = "random, at the model's budget"
    HYPERBAND = "Hyperband, random"
    EQUAL = "random, at random Hyperband's budget"
    ALL = "all to the end"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one way came to.

    Args:
        validation: the winner's score on the rows that chose it.
        test: its score on rows that did not.
        configurations: that were tried.
        rounds: that they used together, or epochs.
        seconds: of wall time, on a gang that was up; None where its trials are read from another way's.
    """

    validation: float
    test: float
    configurations: int
    rounds: int
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Searched:
    """One search.

    Args:
        problem: what it searched.
        runs: its trials, in the order of suggestion.
        rounds: that they trained.
        seconds: of wall time.
    """

    problem: StoppingProblem
    runs: Sequence[TrialRun]
    rounds: int
    seconds: float

    def found(self) -> Found:
        """All of it."""
        return self._winner(self.runs, self.rounds, self.seconds)

    def first(self, trials: int) -> Found:
        """Its first trials alone, where none was stopped: they are what a search of so many would have trained."""
        runs = self.runs[:trials]
        return self._winner(runs, sum(run.resource for run in runs), None)

    def _winner(self, runs: Sequence[TrialRun], rounds: int, seconds: float | None) -> Found:
        best = min(runs, key=lambda run: rank_of(RANKING, run))
        return Found(
            validation=best.value,
            test=best.metrics[self.problem.test],
            configurations=len(runs),
            rounds=rounds,
            seconds=seconds,
        )


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where searches run.

    Args:
        problem: what is searched.
        gangs: that train.
        storage_path: folder for checkpoints; it is made where it is not there.
        workers: of a gang.
    """

    problem: StoppingProblem
    gangs: Gangs
    storage_path: str
    workers: int

    def search(self, name: str, plan: Plan, seed: int, prepare: Callable[[Task], Prepared] = at_random) -> Searched:
        """Runs one search.

        Args:
            name: of its trials.
            plan: its brackets.
            seed: of configurations and trainings.
            prepare: makes the searcher and the scheduler.
        """
        storage.make_folder(self.storage_path)
        problem = self.problem
        task = Task(plan=plan, ranges=problem.ranges, metric=problem.objective, mode="max", seed=seed)
        strategy = prepare(task)
        controller = Controller(
            Search(
                name=name,
                metric=problem.objective,
                mode="max",
                max_jobs=plan.trials,
                max_parallel_jobs=1,
                max_resource=plan.max_resource,
                seed=seed,
                storage_path=self.storage_path,
                static=dict(problem.static),
                workers=lambda hyperparameters: self.workers,
                untuned=False,
            ),
            searcher=strategy.searcher,
            scheduler=strategy.scheduler,
            decode=lambda suggested: decode(problem.ranges, suggested),
            gangs=self.gangs,
            record=NoRecord(),
        )
        started = time.perf_counter()
        controller.run()
        return Searched(
            problem=problem,
            runs=tuple(controller.trials.runs.values()),
            rounds=controller.trained,
            seconds=time.perf_counter() - started,
        )


def nothing_cut(plan: Plan) -> Plan:
    """The trials of a plan, through the rungs that they have there, all going on to the end."""
    brackets = [
        Bracket(rungs=bracket.rungs, sizes=(bracket.sizes[0],) * len(bracket.rungs)) for bracket in plan.brackets
    ]
    return Plan(brackets=tuple(brackets), max_resource=plan.max_resource)


def each_way(place: Place, seed: int, jobs: int = JOBS) -> dict[Way, Found]:
    """One seed's searches; random search has as many configurations as the rounds of each Hyperband pay for.

    Args:
        place: where they run.
        seed: of configurations and trainings.
        jobs: trials of each search.
    """
    units = place.problem.units
    random, learning = lay_out(jobs, 1, units), HyperbandStrategy(max_resource=units, min_resource=1)
    own = learning.plan(place.problem.ranges, jobs, None)
    model = place.search(f"model-{seed}", own, seed, learning.prepare).found()
    cut = place.search(f"hyperband-{seed}", random, seed).found()
    whole = place.search(f"all-{seed}", nothing_cut(random), seed)
    return {
        Way.MODEL: model,
        Way.EQUAL_TO_MODEL: whole.first(configurations(model.rounds, units)),
        Way.HYPERBAND: cut,
        Way.EQUAL: whole.first(configurations(cut.rounds, units)),
        Way.ALL: whole.found(),
    }


Pairs = Sequence[Mapping[Way, Found]]
"""What each seed came to."""
