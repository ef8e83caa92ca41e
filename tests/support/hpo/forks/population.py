"""Simulated searches whose checkpoints fork."""

from __future__ import annotations

from typing import Any

from ray.tune.schedulers import TrialScheduler

from hpo.search.controller import Controller
from hpo.strategies.hyperband import Plan, run_all
from tests.support.simulated import simulate
from trainers.gangs.messages import Assignment

POPULATION, UNITS = 8, 12
PLAN: Plan = run_all(POPULATION, UNITS)


class Models:
    """A curve whose checkpoints matter: a unit adds the more to a model, the nearer eta is to the best of just then."""

    def __init__(self) -> None:
        self.held: dict[str, float] = {}

    def __call__(self, assignment: Assignment, step: int) -> float:
        before = assignment.saved_at(step - 1) if step - 1 > assignment.start else assignment.checkpoint
        value = 0.0 if before is None else self.held[before]
        value += 1 - abs(float(assignment.hyperparameters["eta"]) - (1 - step / UNITS))
        self.held[assignment.saved_at(step)] = self.held[assignment.save_to] = value
        return value


def run(scheduler: TrialScheduler, **options: Any) -> Controller:
    controller, gangs, _ = simulate(scheduler, **{"plan": PLAN, "curve": Models(), "untuned": False, **options})
    controller.gangs = gangs
    return controller


def told(controller: Controller) -> dict[str, Any]:
    """All that a search decided."""
    return {
        name: (run.hyperparameters, run.origin, run.resource, run.value, run.trial.status, run.seed)
        for name, run in controller.runs.items()
    }
