"""Trials that have their beginning in common, on simulated gangs: the answer is that of each trained for itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from ray.tune.schedulers import TrialScheduler

from hpo.forks.effects import Effects
from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange
from hpo.search import trials
from hpo.search.controller import Controller
from hpo.search.kinship.sharing import Sharing
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.search.trial import UNTUNED, TrialRun
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.repeats import repeated
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from tests.support.simulated import METRIC, Kept, drawn, simulate
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Report, Served

RANGES: dict[str, ParameterRange] = {
    "lr": CategoricalParameter([0.1, 0.2]),
    "decay_at": IntegerParameter(2, 6, step=2),
    "factor": CategoricalParameter([0.1, 0.5]),
}
EFFECTS = Effects.of({"decay_at": "decay_at", "factor": "decay_at"}, RANGES)


class Models:
    """A curve whose checkpoints matter: a unit's value follows from all that went into the model, and nothing else."""

    def __init__(self, effects: Effects, luck: float = 0.0) -> None:
        self.held: dict[str, str] = {}
        self.effects = effects
        self.luck = luck

    def __call__(self, assignment: Assignment, step: int) -> float:
        before = assignment.saved_at(step - 1) if step - 1 > assignment.start else assignment.checkpoint
        config = assignment.hyperparameters
        said = [
            self.held[before] if before else "",
            assignment.seed,
            assignment.start,
            self.effects.before(step, config, config),
        ]
        model = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        self.held[assignment.saved_at(step)] = self.held[assignment.save_to] = model
        if drawn(f"fate {model}") < self.luck:
            raise DivergedError("the loss is nan") if drawn(f"which {model}") < 0.5 else ValueError("its own error")
        return drawn(model)


@dataclass
class Told(Kept):
    """A record of every value."""

    values: dict[str, dict[int, float]] = field(default_factory=dict)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        self.values.setdefault(run.id, {}).update({each.step: each.metrics[METRIC] for each in reports})


class Apart(Sharing):
    """Lets every trial train for itself."""

    def taken(self, run: TrialRun, stop: int) -> Served | None:
        return None

    def is_trained(self, *arguments: Any) -> bool:
        return False


def chosen(suggested: dict[str, Any]) -> dict[str, Any]:
    """Values of all ranges from the one number that `Draws` gives."""
    number = int(suggested["eta"] * 10**6)
    values = {}
    for name, bounds in RANGES.items():
        members = list(bounds.members())
        number, place = divmod(number, len(members))
        values[name] = members[place]
    return values


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
            "decode": chosen,
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


PLANS = st.one_of(
    st.builds(lambda jobs, most: lay_out(jobs, 1, most), st.integers(1, 30), st.integers(3, 12)),
    st.builds(run_all, st.integers(1, 15), st.integers(1, 10)),
)


@settings(max_examples=150, deadline=None)
@given(
    PLANS,
    st.sampled_from([1, 2, 4, 8]),
    st.frozensets(st.integers(0, 60), max_size=4),
    st.sampled_from([0.0, 0.02]),
    st.sampled_from([1, 2]),
)
@example(run_all(12, 8), 4, frozenset({0}), 0.0, 1)
def test_the_answer_is_that_of_trials_that_train_for_themselves(
    plan: Plan, parallel: int, losses: frozenset[int], luck: float, repeats: int
) -> None:
    plan = repeated(plan, repeats)
    options = {"repeats": repeats, "luck": luck}
    whole, alone, expected = apart(plan, parallel=1, **options)
    controller, gangs, record = run(plan, parallel=parallel, losses=losses, max_attempts=9, **options)
    assert answer(controller, record) == answer(whole, expected)
    if not losses:
        assert units(gangs) + controller.trials.sharing.units == units(alone) if not luck else True
    assert all(not each.lends for each in controller.runs.values())


@pytest.mark.parametrize("parallel", [1, 2, 3])
def test_a_search_over_schedules_trains_a_common_beginning_once(parallel: int) -> None:
    """Decay at 10, 20 or 30 of 40 units: 10, and 30 more; 10 more for the other two, and 20 more; and 20 more."""
    ranges = {"decay_at": CategoricalParameter([10, 20, 30])}
    effects = Effects.of({"decay_at": "decay_at"}, ranges)
    order = iter([10, 20, 30])
    controller, gangs, _ = run(
        run_all(3, 40), effects=effects, parallel=parallel, decode=lambda suggested: {"decay_at": next(order)}
    )
    assert units(gangs) == 10 + 30 + 10 + 20 + 20
    assert controller.trained == 3 * 40
    assert controller.trials.sharing.units == 30
    first, second, third = controller.runs.values()
    assert (first.common, first.shared) == (None, 0)
    assert second.common is not None
    assert (second.common.parent, second.common.resource, second.shared) == (first.id, 10, 10)
    assert third.common is not None
    assert (third.common.parent, third.common.resource, third.shared) == (second.id, 20, 20)
    begun = {(each.start, each.stop) for each in gangs.served}
    assert begun == {(0, 10), (10, 40), (10, 20), (20, 40), (20, 30), (30, 40)}
