"""Schedules on simulated gangs, whose checkpoints hold what was trained."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from ray.tune.schedulers import TrialScheduler

from hpo.forks.effects import Effects
from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange
from hpo.search import trials
from hpo.search.controller import Controller
from hpo.search.kinship.sharing import Sharing
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.search.trial import UNTUNED, TrialRun
from hpo.strategies.hyperband import Plan
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from tests.support.broken_off import Mortal
from tests.support.simulated import METRIC, Draws, Kept, drawn, simulate
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Event, Report, Served

RANGES: dict[str, ParameterRange] = {
    "lr": CategoricalParameter([0.1, 0.2]),
    "decay_at": IntegerParameter(2, 6, step=2),
    "factor": CategoricalParameter([0.1, 0.5]),
}
EFFECTS = Effects.of({"decay_at": "decay_at", "factor": "decay_at"}, RANGES, {})


class Models:
    """A curve whose checkpoints matter: a unit's value follows from all that went into the model, and nothing else.

    Args:
        effects: of its hyperparameters.
        luck: a unit fails or diverges with this probability; the same model alike.
        exact: where its training was cut makes no difference to a model.
    """

    def __init__(self, effects: Effects, luck: float = 0.0, *, exact: bool = False) -> None:
        self.held: dict[str, str] = {}
        self.effects = effects
        self.luck = luck
        self.exact = exact

    def __call__(self, assignment: Assignment, step: int) -> float:
        before = assignment.saved_at(step - 1) if step - 1 > assignment.start else assignment.checkpoint
        config = assignment.hyperparameters
        said = [
            self.held[before] if before else "",
            assignment.seed,
            0 if self.exact else assignment.start,
            self.effects.before(step, config, config),
        ]
        model = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        self.held[assignment.saved_at(step)] = self.held[assignment.save_to] = model
        if drawn(f"fate {model}") < self.luck:
            raise DivergedError("the loss is nan") if drawn(f"which {model}") < 0.5 else ValueError("its own error")
        return drawn(model)


class Schedules(Draws):
    """Draws a value of each range from the trial's id."""

    def suggest(self, trial_id: str) -> dict[str, Any]:
        values = {}
        for name, bounds in RANGES.items():
            members = list(bounds.members())
            values[name] = members[int(drawn(f"{trial_id}{name}") * len(members))]
        return values


class Apart(Sharing):
    """Lets every trial train for itself."""

    def taken(self, run: TrialRun, stop: int) -> Served | None:
        return None

    def is_trained(self, *arguments: Any) -> bool:
        return False


class Counted(Mortal):
    """Counts how often each part that trials have in common was trained to its end, by its model."""

    models: Models
    times: Counter[str]
    asked: dict[str, Assignment]

    def assign(self, gang: str, assignment: Assignment) -> None:
        self.asked = {**getattr(self, "asked", {}), gang: assignment}
        super().assign(gang, assignment)

    def events(self, timeout: float) -> Sequence[Event]:
        found = super().events(timeout)
        for event in found:
            if isinstance(event, Served) and event.segment and event.trial_id != UNTUNED:
                assignment = self.asked[event.gang]
                whole = event.segment.reached == assignment.stop
                if whole and assignment.stop <= self.models.effects.last(assignment.hyperparameters):
                    self.times[self.models.held[assignment.save_to]] += 1
        return found


@dataclass
class Told(Kept):
    """A record of every value."""

    values: dict[str, dict[int, float]] = field(default_factory=dict)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        self.values.setdefault(run.id, {}).update({each.step: each.metrics[METRIC] for each in reports})


def run(
    plan: Plan,
    *,
    effects: Effects = EFFECTS,
    luck: float = 0.0,
    scheduler: TrialScheduler | None = None,
    **options: Any,
) -> tuple[Controller, SimulatedGangs, Told]:
    return simulate(
        scheduler or SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max"),
        **{
            "plan": plan,
            "curve": Models(effects, luck),
            "record": Told(),
            "searcher": Schedules(),
            "ranges": RANGES,
            "effects": effects,
            "untuned": False,
            **options,
        },
    )


def apart(plan: Plan, **options: Any) -> tuple[Controller, SimulatedGangs, Told]:
    """The same job, where every trial trains for itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "Sharing", Apart)
        return run(plan, **options)


def answer(controller: Controller, record: Told) -> dict[str, Any]:
    """All that a search decided, and every value of it."""
    best = controller.best()
    return {
        "best": best and best.id,
        "trials": {
            name: (
                each.hyperparameters,
                each.seed,
                each.resource,
                repr(each.value),
                each.best_resource,
                each.metrics,
                each.failure,
                each.diverged,
                each.trial.status,
            )
            for name, each in controller.runs.items()
        },
        "values": record.values,
        "cuts": sorted(record.cuts, key=lambda cut: (cut.bracket, cut.resource)),
    }


def units(gangs: SimulatedGangs) -> int:
    return sum(each.stop - each.start for each in gangs.served if each.trial_id != UNTUNED)
