"""The one loop, on simulated gangs: the same decisions whatever runs at once, fails, or is lost."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings, strategies as st
from ray.tune.schedulers import FIFOScheduler

from hpo.strategies.hyperband import lay_out
from tests.support.properties import examples
from tests.support.simulated import simulate
from trainers.gangs.messages import Assignment


@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 3),
    st.integers(3, 60),
    st.integers(1, 12),
    st.integers(0, 2**32),
    st.frozensets(st.integers(0, 80), max_size=3),
)
def test_every_search_ends_within_its_plan(
    jobs: int, least: int, most: int, parallel: int, seed: int, losses: frozenset[int]
) -> None:
    plan = lay_out(jobs, least, most)

    def curve(assignment: Assignment, step: int) -> float:
        luck = random.Random(f"{seed}{assignment.trial_id}{step}").random()
        if luck < 0.01:
            raise ValueError("a trial's own error")
        return math.nan if luck < 0.05 else luck

    controller, _, record = simulate(plan=plan, parallel=parallel, curve=curve, losses=losses)
    assert len(controller.runs) == jobs
    assert all(run.trial.is_finished() for run in controller.runs.values())
    assert controller.trained <= plan.resource
    for name, run in controller.runs.items():
        steps = sorted(set(record.steps.get(name, [])))
        assert steps[: run.resource] == list(range(1, run.resource + 1))
        assert run.failure or len(steps) == run.resource
        # What diverged got no assignment after that, and has no value.
        assert math.isnan(run.value) == bool(run.diverged) or not steps or run.failure
    best = controller.best()
    assert best is None or (math.isfinite(best.value) and not best.failure and not best.diverged)


def test_a_stock_fifo_runs_every_trial_to_the_end() -> None:
    controller, _, _ = simulate(FIFOScheduler(), untuned=False)
    assert {run.resource for run in controller.runs.values()} == {30}
