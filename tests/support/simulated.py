"""Searches on simulated gangs, for the tests of scheduler and controller."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from hpo.cost.ledger import Entry
from hpo.cost.throughput import Probed
from hpo.record.tables import AdditionRow
from hpo.search.controller import Controller
from hpo.search.observer import JobState, Record
from hpo.search.simulated_gangs import Curve, SimulatedGangs
from hpo.search.trial import Search, TrialRun
from hpo.strategies.hyperband import Cut, Plan, lay_out
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from trainers.gangs.messages import Assignment, Report

METRIC = "validation:auc"
WORKERS = 3
PLAN = lay_out(30, 1, 30)


@cache
def drawn(seed: str) -> float:
    """The number that belongs to a text; a generator for each would take a tenth of a simulation's time."""
    return random.Random(seed).random()


class Draws(Searcher):
    """Draws eta from the trial's id; remembers what it is told."""

    def __init__(self, dry_after: int = 10_000) -> None:
        super().__init__(metric=METRIC, mode="max")
        self.completed: list[tuple[str, bool]] = []
        self.suggested = 0
        self.dry_after = dry_after

    def suggest(self, trial_id: str) -> dict[str, Any] | str:
        if self.suggested == self.dry_after:
            return Searcher.FINISHED
        self.suggested += 1
        return {"eta": drawn(trial_id)}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        self.completed.append((trial_id, error))


@dataclass
class Kept:
    """A record in memory."""

    stop_requested: bool = False
    additions: Sequence[AdditionRow] = ()
    stops: Mapping[str, str] = field(default_factory=dict)
    steps: dict[str, list[int]] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    rounds: int = 0
    probed: list[int] = field(default_factory=list)
    found: list[Probed] = field(default_factory=list)

    def trial(self, run: TrialRun) -> None:
        pass

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        self.steps.setdefault(run.id, []).extend(report.step for report in reports)

    def ledger(self, entries: Sequence[Entry]) -> None:
        self.entries += entries

    def rung(self, cut: Cut) -> None:
        self.cuts.append(cut)

    def leave_out(self, last: int) -> None:
        pass

    def progress(self, state: JobState) -> None:
        self.rounds += 1

    def probe(self, probed: Probed) -> None:
        self.probed.append(len(probed.segment.reports))
        self.found.append(probed)


def rising(assignment: Assignment, step: int) -> float:
    """A learning curve that rises towards eta."""
    return float(assignment.hyperparameters.get("eta", 0.0)) * (1 - 0.9**step)


def uneven(assignment: Assignment) -> float:
    """Seconds a unit, different for each trial."""
    return 0.1 + drawn(assignment.trial_id)


def search_of(plan: Plan, *, parallel: int, **options: Any) -> Search:
    """A search that fills a plan."""
    return Search(
        **{
            "name": "job",
            "metric": METRIC,
            "mode": "max",
            "max_jobs": plan.trials,
            "max_parallel_jobs": parallel,
            "max_resource": plan.max_resource,
            "seed": 1,
            "storage_path": "/nowhere",
            "workers": lambda hyperparameters: WORKERS,
            **options,
        }
    )


def simulate(
    scheduler: TrialScheduler | None = None,
    *,
    plan: Plan = PLAN,
    parallel: int = 4,
    curve: Curve = rising,
    losses: frozenset[int] = frozenset(),
    unit_seconds: Callable[[Assignment], float] = uneven,
    searcher: Searcher | None = None,
    record: Record | None = None,
    reported: str = METRIC,
    room: int | None = None,
    gangs: type[SimulatedGangs] = SimulatedGangs,
    details: dict[str, Any] | None = None,
    decode: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    **options: Any,
) -> tuple[Controller, SimulatedGangs, Any]:
    """Runs a search to its end."""
    simulated = gangs(
        curve,
        metric=reported,
        room=room,
        start_seconds=8.0,
        unit_seconds=unit_seconds,
        details=details,
        losses=losses,
    )
    record = record or Kept()
    search = search_of(plan, parallel=parallel, **options)
    controller = Controller(
        search,
        searcher=searcher or Draws(),
        scheduler=scheduler or SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max"),
        decode=decode,
        gangs=simulated,
        record=record,
        on_probe=getattr(record, "probe", lambda probed: None),
        clock=simulated.clock,
    )
    controller.run()
    return controller, simulated, record


def outcome(controller: Controller) -> tuple[dict[str, int], str | None]:
    """Return the units at which each trial stopped, and the winner."""
    best = controller.best()
    return {name: run.resource for name, run in controller.runs.items()}, best and best.id
