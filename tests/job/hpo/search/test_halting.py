"""Trials that are halted in the middle of a rung, on simulated gangs: the same decisions in the end."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import given, settings, strategies as st

from hpo.search.controller import Controller
from hpo.search.trial import status_of
from tests.support.hpo.search.halting import Halting
from tests.support.properties import examples
from tests.support.simulated import rising, simulate
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment


class Brittle:
    """A curve some of whose trials fail, or diverge, at a step of their own."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, assignment: Assignment, step: int) -> float:
        dice = random.Random(f"{self._seed}/{assignment.trial_id}")
        if step == dice.randint(1, 45):
            if dice.random() < 0.3:
                return math.nan
            raise dice.choice([ValueError, DivergedError])(f"broken at unit {step}")
        return rising(assignment, step)


def standings(controller: Controller) -> dict[str, Any]:
    return {
        run.id: str(
            (status_of(run), run.resource, run.value, run.best_value, run.best_resource, run.failure, run.metrics)
        )
        for run in [*controller.runs.values(), controller.untuned]
        if run is not None
    }


@settings(max_examples=examples(60))
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 4), st.booleans())
def test_trials_that_were_halted_fail_where_they_would_have(seed: int, dice: int, parallel: int, exact: bool) -> None:
    class Now(Halting):
        first = halts = dice

    straight, _, _ = simulate(curve=Brittle(seed), parallel=parallel)
    halted, _, _ = simulate(curve=Brittle(seed), parallel=parallel, gangs=Now, exact_from=lambda hyperparameters: exact)
    assert standings(halted) == standings(straight)
    assert halted.trained == straight.trained
