"""What is known of Ray Tune's schedulers from their private attributes: it fails where ray changes them."""

from __future__ import annotations

from typing import Any

import pytest
from ray.tune.schedulers import (
    AsyncHyperBandScheduler,
    FIFOScheduler,
    MedianStoppingRule,
    TrialScheduler,
)

from hpo.strategies.hyperband import run_all
from hpo.strategies.ray_tune import known
from hpo.strategies.ray_tune.guard import Guard
from hpo.strategies.ray_tune.scheduler import GuardedScheduler
from hpo.strategies.scheduler import RESOURCE
from tests.support.simulated import METRIC, outcome, simulate

PLAN = run_all(20, 27)
COUNTED: dict[str, Any] = {"time_attr": RESOURCE, "metric": METRIC, "mode": "max"}


def guarded(scheduler: TrialScheduler) -> GuardedScheduler:
    return GuardedScheduler(scheduler, milestones=known.milestones(scheduler, 27), guard=Guard(1))


@pytest.mark.parametrize(
    "make",
    [
        FIFOScheduler,
        lambda: AsyncHyperBandScheduler(max_t=27, **COUNTED),
        lambda: AsyncHyperBandScheduler(max_t=20, grace_period=2, reduction_factor=2.5, **COUNTED),
        lambda: MedianStoppingRule(grace_period=4.5, min_samples_required=2, **COUNTED),
    ],
)
def test_a_scheduler_asked_where_it_decides_decides_as_one_asked_at_every_unit(make: Any) -> None:
    often, every, _ = simulate(make(), plan=PLAN, parallel=1)
    seldom, some, _ = simulate(guarded(make()), plan=PLAN, parallel=1)
    assert outcome(seldom) == outcome(often)
    assert len(some.served) < len(every.served)
