"""Gangs of trials that go on at once, as their scheduler pauses none: each stays where its program waits."""

from __future__ import annotations

import pytest
from ray.tune.schedulers import AsyncHyperBandScheduler

from hpo.strategies import RESOURCE
from hpo.strategies.hyperband import run_all
from hpo.strategies.ray_tune import known
from hpo.strategies.ray_tune.guard import Guard
from hpo.strategies.ray_tune.scheduler import GuardedScheduler
from tests.support.simulated import METRIC, simulate

ALL = run_all(20, 27)


def asha() -> GuardedScheduler:
    scheduler = AsyncHyperBandScheduler(time_attr=RESOURCE, metric=METRIC, mode="max", max_t=27)
    return GuardedScheduler(scheduler, milestones=known.milestones(scheduler, 27), guard=Guard(1))


@pytest.mark.parametrize("parallel", [1, 4])
def test_the_answer_is_that_of_a_search_whose_programs_are_ended_at_each_rung(parallel: int) -> None:
    """Which gang trains makes no difference where trials take as long as they do."""
    answers = []
    for stops_only in (False, True):
        controller, _, record = simulate(asha(), plan=ALL, parallel=parallel, stops_only=stops_only)
        answers.append((record.steps, controller.best().id, controller.trained, controller.seconds))
    assert answers[0] == answers[1]
