"""Schedules on simulated gangs, whose checkpoints hold what was trained."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hpo.forks.effects import Effects
from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange
from hpo.search.kinship.sharing import Sharing
from hpo.search.trial import UNTUNED, TrialRun
from tests.support.broken_off import Mortal
from tests.support.simulated import Draws, drawn
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Event, Served

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
