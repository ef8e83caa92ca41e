"""Schedules on simulated gangs, whose checkpoints hold what was trained."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from ray.tune.schedulers import TrialScheduler

from hpo.forks.effects import Effects
from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange, decode, present
from hpo.search import trials
from hpo.search.controller import Controller
from hpo.search.kinship.sharing import Sharing
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.search.trial import UNTUNED, TrialRun
from hpo.strategies.hyperband import Plan
from hpo.strategies.openings import by_number
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from hpo.strategies.searchers import History, ModelSearch
from tests.support.broken_off import Mortal
from tests.support.simulated import METRIC, Draws, Kept, drawn, simulate
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Event, Report, Served

RANGES: dict[str, ParameterRange] = {
    "lr": CategoricalParameter([0.1, 0.2]),
    "decay_at": IntegerParameter(2, 6, step=2),
    "factor": CategoricalParameter([0.1, 0.5]),
}
CONDITIONAL: dict[str, ParameterRange] = {
    "lr": RANGES["lr"],
    "schedule": CategoricalParameter(["constant", "step"]),
    "decay_at": IntegerParameter(2, 6, step=2, when={"schedule": ["step"]}),
    "factor": CategoricalParameter([0.1, 0.5], when={"schedule": ["step"]}),
}
EFFECTS = Effects.of({"decay_at": "decay_at", "factor": "decay_at"}, RANGES, {})


class Models:
    """A curve whose checkpoints matter: a unit's value follows from all that went into the model, and nothing else.

    Args:
        effects: of its hyperparameters.
        luck: a unit fails or diverges with this probability; the same model alike.
        exact: where its training was cut makes no difference to a model.
        seen: what a unit of a configuration looks at; None is what takes effect by then.
    """

    def __init__(
        self,
        effects: Effects,
        luck: float = 0.0,
        *,
        exact: bool = False,
        seen: Callable[[Mapping[str, Any], int], Any] | None = None,
    ) -> None:
        self.held: dict[str, str] = {}
        self.effects = effects
        self.luck = luck
        self.exact = exact
        self.seen = seen or (lambda config, step: effects.before(step, config, config))

    def __call__(self, assignment: Assignment, step: int) -> float:
        before = assignment.saved_at(step - 1) if step - 1 > assignment.start else assignment.checkpoint
        config = assignment.hyperparameters
        said = [
            self.held[before] if before else "",
            assignment.seed,
            0 if self.exact else assignment.start,
            self.seen(config, step),
        ]
        model = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        self.held[assignment.saved_at(step)] = self.held[assignment.save_to] = model
        if drawn(f"fate {model}") < self.luck:
            raise DivergedError("the loss is nan") if drawn(f"which {model}") < 0.5 else ValueError("its own error")
        return drawn(model)


def rate(config: Mapping[str, Any], step: int) -> float:
    """Return the learning rate of a configuration of `CONDITIONAL` at a unit."""
    falls = config["schedule"] == "step" and step > config["decay_at"]
    return float(config["lr"] * (config["factor"] if falls else 1))


def drawn_from(ranges: Mapping[str, ParameterRange], text: str) -> dict[str, Any]:
    """The values of each range that belong to a text, where its condition is met."""
    values = {}
    for name, bounds in ranges.items():
        members = list(bounds.members())
        values[name] = members[int(drawn(f"{text}{name}") * len(members))]
    return {name: values[name] for name in present(ranges, values)}


class Schedules(Draws):
    """Draws a value of each range from the trial's id."""

    def __init__(self, ranges: Mapping[str, ParameterRange] = RANGES) -> None:
        super().__init__()
        self.ranges = ranges

    def suggest(self, trial_id: str) -> dict[str, Any]:
        return drawn_from(self.ranges, trial_id)


class Attentive(ModelSearch):
    """Suggests what follows from all that a model would read, down to the last bit, and from nothing else."""

    def __init__(
        self, plan: Plan, *, ranges: Mapping[str, ParameterRange] = RANGES, lag: int = 2, history: History | None = None
    ) -> None:
        history = history or History(plan, by_number(plan, lag))
        super().__init__(ranges, plan, metric=METRIC, mode="max", seed=1, fewest=2, ahead=False, history=history)

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        suggested = super().suggest(trial_id)
        return suggested and decode(self._ranges, suggested)

    def compute(self, number: int) -> dict[str, Any]:
        seen, unseen = self._history.read(number)
        read = [number, [[each.hyperparameters, each.resource, each.value] for each in seen], unseen]
        return drawn_from(self._ranges, json.dumps(read))


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
    seen: Callable[[Mapping[str, Any], int], Any] | None = None,
    scheduler: TrialScheduler | None = None,
    **options: Any,
) -> tuple[Controller, SimulatedGangs, Told]:
    return simulate(
        scheduler or SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max"),
        **{
            "plan": plan,
            "curve": Models(effects, luck, seen=seen),
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
    """All that a search decided, and every value of it; others may train beside first trials that all fail."""
    best, hopeless = controller.best(), controller.trials.hopeless
    counted = {name for name, each in controller.runs.items() if not hopeless or controller.trials.counts(each.number)}
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
            if name in counted
        },
        "values": {name: values for name, values in record.values.items() if name in counted},
        "cuts": hopeless or sorted(record.cuts, key=lambda cut: (cut.bracket, cut.resource)),
    }


def units(gangs: SimulatedGangs) -> int:
    return sum(each.stop - each.start for each in gangs.served if each.trial_id != UNTUNED)


def alone(models: Models, run: TrialRun, plan: Plan) -> tuple[dict[int, float], str]:
    """The values of a trial of a plan that trains for itself as far as it may come, and why it ends before."""
    config, at, before, values = run.trial.config, 0, None, {}
    while at < run.limit:
        rung = next(rung for rung in plan.brackets[run.bracket or 0].rungs if rung > at)
        split = models.effects.next_split(at, config)
        stop = rung if split is None else min(rung, split)
        assignment = Assignment(
            trial_id=run.id,
            hyperparameters=config,
            seed=run.seed,
            start=at,
            stop=stop,
            checkpoint=before,
            save_to=f"alone/{run.id}/{stop:06d}",
            objective=METRIC,
        )
        try:
            for step in range(at + 1, stop + 1):
                values[step] = models(assignment, step)
        except Exception as error:
            return values, str(error)
        at, before = stop, assignment.save_to
    return values, ""
