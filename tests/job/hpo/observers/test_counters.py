"""What a running job's trials add up to, against what the controller knows at its end and on its way."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings, strategies as st

from hpo.strategies.hyperband import lay_out
from tests.support.hpo.observers.counters import Counting
from tests.support.properties import examples
from tests.support.simulated import simulate
from trainers.gangs.messages import Assignment


def jumping(assignment: Assignment, step: int) -> float:
    """A curve that falls as often as it rises, with failures and values that are none."""
    draw = random.Random(f"{assignment.trial_id}/{step}")
    if draw.random() < 0.02:
        raise ValueError("no")
    return math.nan if draw.random() < 0.1 else draw.random()


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1, 60), st.integers(1, 6), st.booleans())
def test_it_counts_what_the_controller_would_find_by_looking_at_all(jobs: int, parallel: int, by_best: bool) -> None:
    plan = lay_out(jobs, 1, 9)
    record = Counting(plan, by_best)
    controller, _, _ = simulate(plan=plan, record=record, parallel=parallel, curve=jumping, best_value=by_best)
    record.progress(controller.state)
    assert record.runs == controller.runs
    assert record.tally.ended == jobs
