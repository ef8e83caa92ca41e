"""What a suggestion reads: the same whatever came first, on however many gangs; and it never waits for ever."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import given, settings, strategies as st

from hpo.ranges import ContinuousParameter, IntegerParameter, decode
from hpo.search.controller import Controller
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.strategies.hyperband import Plan
from hpo.strategies.openings import Openings, by_clock
from hpo.strategies.strategy import Task
from tests.support.digests import by_digest
from tests.support.hpo.strategies.searchers.history import PLANS
from tests.support.properties import examples
from tests.support.simulated import Kept, search_of
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment

RANGES = {"eta": ContinuousParameter(0.001, 1, "Logarithmic"), "depth": IntegerParameter(1, 300)}
METRIC = "validation:auc"


def value(assignment: Assignment, step: int) -> float:
    """Some fail, and some diverge on their way."""
    eta, depth = assignment.hyperparameters["eta"], assignment.hyperparameters["depth"]
    if depth % 13 == 1:
        raise ValueError("this depth is not possible")
    if depth % 11 == 1 and step > 2:
        raise DivergedError("the loss is nan")
    return -abs(math.log10(eta) + 2) - 1 / step


def tried(
    plan: Plan, gangs: int, seed: int, losses: frozenset[int] = frozenset(), openings: Openings | None = None
) -> list[dict[str, Any]]:
    """The configurations of a search on so many gangs whose speeds a seed decides."""
    speeds = random.Random(seed)
    simulated = SimulatedGangs(
        value,
        metric=METRIC,
        room=gangs,
        start_seconds=3,
        unit_seconds=lambda assignment: speeds.uniform(0.1, 4) if seed else 1.0,
        losses=losses,
    )
    strategy = by_digest(Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=3, parallel=gangs), openings)
    controller = Controller(
        search_of(plan, parallel=gangs, metric=METRIC, workers=lambda hyperparameters: 1, untuned=False),
        searcher=strategy.searcher,
        scheduler=strategy.scheduler,
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=simulated,
        record=Kept(),
        clock=simulated.clock,
    )
    controller.run()
    assert len(controller.runs) == plan.trials
    return [run.hyperparameters for run in controller.runs.values()]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, len(PLANS) - 1),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 10**6),
    st.frozensets(st.integers(0, 30), max_size=2),
)
def test_what_is_tried_does_not_depend_on_gangs_or_on_speed(
    plan: int, gangs: int, seed: int, losses: frozenset[int]
) -> None:
    assert tried(PLANS[plan], gangs, seed, losses) == tried(PLANS[plan], 1, 0)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from([each for each in PLANS if not each.apart]),
    st.sampled_from([1, 3, 12, 16]),
    st.integers(1, 10**6),
    st.frozensets(st.integers(0, 30), max_size=2),
)
def test_nor_does_it_where_results_open_by_a_clock(plan: Plan, gangs: int, seed: int, losses: frozenset[int]) -> None:
    clocked = by_clock(plan, 12, 1.5)
    assert tried(plan, gangs, seed, losses, clocked) == tried(plan, 1, 0, openings=clocked)
