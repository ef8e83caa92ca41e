"""Persons who stop trials of searches on simulated gangs, and searches that are gone through once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler

from hpo import ContinuousParameter
from hpo.strategies.asha.asha_scheduler import AshaScheduler
from hpo.strategies.asha.promotions import lay_out_asynchronous
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.median_rule import with_median_rule
from hpo.strategies.ray_tune.guard import Guard
from hpo.strategies.ray_tune.scheduler import GuardedScheduler
from hpo.strategies.repeats import configurations_of, repeated
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.strategy import Task
from tests.support.broken_off import Mortal, Service, hyperband, luck
from tests.support.digests import by_digest
from tests.support.populations import pbt
from tests.support.simulated import METRIC, Draws
from trainers.gangs.messages import Event

IN_ORDER = {"in_order": True}


def asha(plan: Plan) -> TrialScheduler:
    return AshaScheduler(plan, metric=METRIC, mode="max")


def rays(plan: Plan) -> TrialScheduler:
    scheduler = AsyncHyperBandScheduler(time_attr=RESOURCE, max_t=plan.max_resource, grace_period=1)
    scheduler.set_search_properties(METRIC, "max")
    return GuardedScheduler(scheduler, milestones=lambda trial, resource: resource + 1, guard=Guard(7))


KINDS: dict[str, tuple[Plan, Callable[[Plan], TrialScheduler], dict[str, Any]]] = {
    "Hyperband": (lay_out(9, 1, 9), hyperband, {}),
    "Hyperband, large": (lay_out(30, 1, 30), hyperband, {}),
    "Hyperband, repeats": (repeated(lay_out(6, 1, 9), 2), hyperband, {"repeats": 2}),
    "Random": (run_all(7, 12), hyperband, {}),
    "median rule": (with_median_rule(run_all(12, 18)), hyperband, {}),
    "median rule, repeats": (repeated(with_median_rule(run_all(6, 18)), 2), hyperband, {"repeats": 2}),
    "Hyperband, learns": (lay_out(12, 1, 9), hyperband, {}),
    "Bayesian": (run_all(12, 9), hyperband, {}),
    "Bayesian, repeats": (repeated(run_all(6, 9), 2), hyperband, {"repeats": 2}),
    "ASHA": (lay_out_asynchronous(12, 1, 9), asha, IN_ORDER),
    "population": (run_all(5, 9), lambda plan: pbt(), {}),
    "population, as they come": (run_all(5, 9), lambda plan: pbt(synch=False), IN_ORDER),
    "RayTune": (run_all(8, 9), rays, IN_ORDER),
}


class Asking(Mortal):
    """Gangs beside which a person asks for trials to be stopped: behind an event, one of those that have not ended."""

    asks: list[tuple[int, int]]

    def events(self, timeout: float) -> Sequence[Event]:
        for ask in [each for each in self.asks if each[0] <= self.heard_of]:
            rows = self.rows.trials.values()
            live = sorted(row.trial_id for row in rows if row.number >= 0 and row.ended_at is None)
            if live:
                self.asks.remove(ask)
                self.rows.stops.setdefault(live[ask[1] % len(live)], "ada")
        return super().events(timeout)


def service_of(kind: str, parallel: int, asks: Sequence[tuple[int, int]], **options: Any) -> Service:
    """A search of a kind, of which some trials are stopped."""
    plan, scheduler, own = KINDS[kind]
    ranges = {"eta": ContinuousParameter(0.0, 1.0)}
    task = Task(plan=configurations_of(plan), ranges=ranges, metric=METRIC, mode="max", seed=1)
    learns = "learns" in kind or "Bayesian" in kind
    gangs = type("AskingOnce", (Asking,), {"asks": list(asks)})
    return Service(
        plan=plan,
        scheduler=scheduler,
        searcher=(lambda: by_digest(task).searcher) if learns else Draws,
        parallel=parallel,
        gangs=gangs,
        curve=luck,
        options={**own, **options},
    )
