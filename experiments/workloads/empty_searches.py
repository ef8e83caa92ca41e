"""Searches without training: the real searcher, scheduler, controller, ledger and store on gangs that answer at once.

`hpo.search.simulated_gangs` stands in for the workers. Two plans: "Hyperband", `lay_out(trials, 1, 50)`, and "every
report", `run_all(trials, 50)`, in which each of the trials reports 50 times and none is stopped.
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ray.tune.experiment import Trial

from experiments.shared.benchmark import apart
from experiments.workloads.memory import held
from hpo import ContinuousParameter, IntegerParameter
from hpo.cost import Entry
from hpo.jobs import JobRecord
from hpo.ranges import ParameterRange, decode, search_space
from hpo.record import AdditionRow, JobRow, LedgerRow, ReportRow, Store, TrialRow
from hpo.search import Controller, JobState, Search, SimulatedGangs, TrialRun
from hpo.strategies import RESOURCE, Cut, Plan, RandomSearch, SynchronousHyperBandScheduler, lay_out, run_all
from trainers.gangs import Assignment, Report

REPORTS, AT_ONCE, BATCHES, SEED = 50, 8, 200, 1729
WRITTEN_SECONDS = 300.0
METRIC = "validation:auc"
RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0, 1),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(1, 10),
}
PLANS: dict[str, Callable[[int], Plan]] = {
    "Hyperband": lambda trials: lay_out(trials, 1, REPORTS),
    "every report": lambda trials: run_all(trials, REPORTS),
}


@dataclass(frozen=True, kw_only=True)
class Searched:
    """One search on gangs that answer at once.

    Args:
        plan: which of `PLANS`.
        trials: in all.
        reports: in all.
        scheduler: processor microseconds a report in `on_trial_result` alone.
        loop: the same in the whole loop, recorded nowhere.
        durable: the same until all is in SQLite.
        durable_wall: wall microseconds of the same.
        memory: bytes of the process at the end of the loop, more than before it.
        peak: bytes of the process at most, its imports included.
    """

    plan: str
    trials: int
    reports: int
    scheduler: float
    loop: float
    durable: float
    durable_wall: float
    memory: int
    peak: int


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Commits to a store that holds a search.

    Args:
        milliseconds: of the wall, for each assignment of `REPORTS` reports.
        alone: processor microseconds of a report that is committed by itself.
        alone_wall: wall microseconds of the same.
    """

    milliseconds: list[float]
    alone: float
    alone_wall: float


class NoRecord:
    """A record that keeps nothing."""

    stop_requested = False
    additions: Sequence[AdditionRow] = ()
    stops: Mapping[str, str] = MappingProxyType({})

    def trial(self, run: TrialRun) -> None: ...

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None: ...

    def ledger(self, entries: Sequence[Entry]) -> None: ...

    def rung(self, cut: Cut) -> None: ...

    def progress(self, state: JobState) -> None: ...

    def leave_out(self, last: int) -> None: ...


class NoController:
    """What a scheduler alone may call."""

    def stop_trial(self, trial: Trial) -> None: ...


def curve(assignment: Assignment, step: int) -> float:
    """A learning curve that rises towards a value of the trial's own."""
    return float(assignment.hyperparameters["eta"]) * (1 - 0.9**step)


def searches(trials: int, scratch: str, repeats: int) -> list[Searched]:
    """Every plan with so many trials, each in processes of its own; the middle one of `repeats` by its durable time."""
    found = []
    for plan in PLANS:
        runs = [apart(search, plan, trials, f"{scratch}/{plan}-{trials}-{number}.db") for number in range(repeats)]
        found.append(sorted(runs, key=lambda run: run.durable)[repeats // 2])
    return found


def search(plan: str, trials: int, path: str) -> Searched:
    """One search, three times: its scheduler alone, recorded nowhere, and recorded in SQLite."""
    layout = PLANS[plan](trials)
    deciding, reports = schedule(layout)
    before, began = held(), time.process_time()
    controller = run(layout, NoRecord())
    looped, memory = time.process_time() - began, held() - before
    assert controller.trained == reports, "both did the same work"
    del controller
    began, began_wall = time.process_time(), time.perf_counter()
    record(layout, path)
    durable, durable_wall = time.process_time() - began, time.perf_counter() - began_wall
    return Searched(
        plan=plan,
        trials=trials,
        reports=reports,
        scheduler=1e6 * deciding / reports,
        loop=1e6 * looped / reports,
        durable=1e6 * durable / reports,
        durable_wall=1e6 * durable_wall / reports,
        memory=memory,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def schedule(plan: Plan) -> tuple[float, int]:
    """Seconds in `on_trial_result` over all reports of a plan, and how many there were."""
    scheduler = SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max")
    names = [f"search-{number}" for number in range(plan.trials)]
    for name in names:
        scheduler.on_trial_add(NoController(), Trial("warmband", trial_id=name, stub=True))
    heights = {name: random.Random(name).random() for name in names}
    reached = dict.fromkeys(heights, 0)
    seconds, reports = 0.0, 0
    while (trial := scheduler.choose_trial_to_run(NoController())) is not None:
        name = trial.trial_id
        steps = range(reached[name] + 1, scheduler.milestone(trial) + 1)
        results = [{METRIC: heights[name] * (1 - 0.9**step), RESOURCE: step} for step in steps]
        began = time.process_time()
        for result in results:
            scheduler.on_trial_result(NoController(), trial, result)
        seconds += time.process_time() - began
        reached[name] = steps[-1]
        reports += len(results)
    return seconds, reports


def run(plan: Plan, record: Any) -> Controller:
    """A whole search."""
    gangs = SimulatedGangs(curve, metric=METRIC, unit_seconds=lambda assignment: 1.0)
    controller = Controller(
        Search(
            name="search",
            metric=METRIC,
            mode="max",
            max_jobs=plan.trials,
            max_parallel_jobs=AT_ONCE,
            max_resource=plan.max_resource,
            seed=SEED,
            storage_path="/nowhere",
            untuned=False,
        ),
        searcher=RandomSearch(search_space(RANGES), metric=METRIC, mode="max", seed=SEED),
        scheduler=SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max"),
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=gangs,
        record=record,
        clock=gangs.clock,
    )
    controller.run()
    return controller


def record(plan: Plan, path: str) -> None:
    """A whole search, until it is in SQLite."""
    with Store(f"sqlite:///{path}") as store:
        store.create_job(JobRow(name="search", created_at=0.0))
        with store.writer("search") as writer:
            run(plan, JobRecord(writer, METRIC))
            writer.flush(WRITTEN_SECONDS)


def durable_batches(path: str) -> Batches:
    """Commits of `BATCHES` assignments, and of as many reports alone, to a store that holds a search."""
    with Store(f"sqlite:///{path}") as store, store.writer("search") as writer:

        def reports(name: str, count: int) -> list[ReportRow]:
            return [
                ReportRow(job="search", trial_id=name, step=step, objective=0.5, metrics={METRIC: 0.5}, at=0.0)
                for step in range(1, count + 1)
            ]

        def assignment(name: str, number: int) -> None:
            writer.report(*reports(name, REPORTS))
            writer.trial(TrialRow(job="search", trial_id=name, number=number, resource=REPORTS, objective=0.5))
            writer.ledger(
                *(
                    LedgerRow(job="search", trial_id=name, gang="gang0", kind=kind, worker_seconds=1.0, at=0.0)
                    for kind in ("training", "checkpointing", "idle")
                )
            )

        batches = []
        for number in range(BATCHES):
            began = time.perf_counter()
            assignment(f"batch-{number}", number)
            writer.flush()
            batches.append(1e3 * (time.perf_counter() - began))
        began, began_wall = time.process_time(), time.perf_counter()
        for number in range(BATCHES):
            writer.report(*reports(f"alone-{number}", 1))
            writer.flush()
        processor, wall = time.process_time() - began, time.perf_counter() - began_wall
    return Batches(milliseconds=batches, alone=1e6 * processor / BATCHES, alone_wall=1e6 * wall / BATCHES)
