"""When results open to suggestions: behind them, the same in a job that grew, and such that no gang waits."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from hpo.ranges import ContinuousParameter, decode
from hpo.search.controller import Controller
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.strategies.hyperband import Plan, lay_out_cutting
from hpo.strategies.model_strategy import lag_for
from hpo.strategies.openings import Openings, by_clock, by_number
from hpo.strategies.random_strategy import at_random
from hpo.strategies.strategy import Task
from tests.support.digests import by_digest
from tests.support.simulated import Kept, search_of

METRIC = "validation:auc"
RANGES = {"eta": ContinuousParameter(0.001, 1, "Logarithmic")}


gangs = st.integers(1, 40)


@pytest.mark.parametrize("gangs", [9, 16, 32])
@pytest.mark.parametrize("jobs", [45, 100])
def test_on_gangs_as_fast_as_one_another_hardly_a_suggestion_waits(gangs: int, jobs: int) -> None:
    """What waits does so for pieces that end at the same moment, which a clock may take in another order."""
    plan = lay_out_cutting(jobs, 2, 52)
    least = seconds(plan, gangs, None)
    clocked = seconds(plan, gangs, by_clock(plan, gangs, 1.5))
    assert clocked <= 1.05 * least
    if gangs < jobs / 2:
        assert clocked < seconds(plan, gangs, by_number(plan, lag_for(gangs)))


def seconds(plan: Plan, gangs: int, openings: Openings | None) -> float:
    """Simulated seconds of a search on gangs of which each trains a unit in one; of a random one without openings."""
    simulated = SimulatedGangs(
        lambda assignment, step: -assignment.hyperparameters["eta"],
        metric=METRIC,
        room=gangs,
        start_seconds=0,
        unit_seconds=lambda assignment: 1.0,
    )
    task = Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=3, parallel=gangs)
    made = by_digest(task, openings) if openings else at_random(task)
    Controller(
        search_of(plan, parallel=gangs, metric=METRIC, workers=lambda hyperparameters: 1, untuned=False),
        searcher=made.searcher,
        scheduler=made.scheduler,
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=simulated,
        record=Kept(),
        clock=simulated.clock,
    ).run()
    return simulated.clock()
