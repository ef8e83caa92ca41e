"""Repeats: configurations go from rung to rung by the mean of their trials, whoever is faster or fails."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from hpo.ranking import FAILED, Ranking, Standing, best_of, ranks
from hpo.strategies.hyperband import Hyperband, Plan, State, lay_out, run_all
from hpo.strategies.median_rule import MedianRule, with_median_rule
from hpo.strategies.repeats import Means, Repeated, configurations_of, mean, repeated
from tests.support.properties import examples
from tests.support.simulated import drawn, outcome, simulate
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment

PLANS = [lay_out(9, 1, 9), lay_out(5, 1, 3), run_all(6, 4), with_median_rule(run_all(8, 9))]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_a_plan_counts_trials_and_is_made_again(plan: Plan, repeats: int) -> None:
    whole = repeated(plan, repeats)
    assert (whole.trials, whole.resource) == (repeats * plan.trials, repeats * plan.resource)
    assert configurations_of(whole) == plan
    assert Plan.from_json(whole.to_json()) == whole


def test_means_wait_for_all_and_do_not_depend_on_who_comes_first() -> None:
    means = Means(3)
    assert [means.take(2, 1, 0.1), means.take(0, 1, 0.2), means.take(0, 2, 5.0)] == [None, None, None]
    assert means.take(1, 1, 0.3) == mean([0.2, 0.3, 0.1])
    assert means.take(2, 1, 0.9) is None  # It trains its first unit again.
    assert math.isnan(mean([0.1, math.inf]))


def told(plan: Plan, repeats: int, value: Callable[[int, int, int], float | None], seed: int) -> dict[str, object]:
    """What becomes of trials that come in an order that a seed decides; a value of None is a failure."""
    core = Repeated((MedianRule if plan.apart else Hyperband)(plan, maximize=True), repeated(plan, repeats))
    order = random.Random(seed)
    reached: dict[str, int] = {}
    numbers: dict[str, int] = {}
    while True:
        for _ in range(order.randrange(1, 4)):
            if len(numbers) < repeats * plan.trials:
                trial = f"t{len(numbers):03d}"
                numbers[trial] = len(numbers)
                reached[trial] = 0
                core.add(trial)
        runnable = list(core.runnable())
        if not runnable and len(numbers) == repeats * plan.trials:
            break
        if not runnable:
            continue
        trial = order.choice(runnable)
        for unit in range(reached[trial] + 1, core.milestone(trial) + 1):
            found = value(numbers[trial] // repeats, numbers[trial] % repeats, unit)
            if found is None:
                core.fail(trial)
                break
            reached[trial] = unit
            core.report(trial, unit, found)
    states = {trial: core.state(trial) for trial in numbers}
    assert not {State.TRAINING, State.WAITING} & set(states.values())
    return {"reached": reached, "states": states, "cuts": sorted(map(str, core.cuts))}


def luck(configuration: int, repeat: int, unit: int) -> float | None:
    found = drawn(f"{configuration}/{repeat}/{unit}")
    return None if found < 0.03 else found


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 3), st.integers(2, 3), st.integers(0, 10**6))
def test_what_becomes_of_trials_does_not_depend_on_their_order(plan: int, repeats: int, seed: int) -> None:
    found = told(PLANS[plan], repeats, luck, seed)
    assert found == told(PLANS[plan], repeats, luck, 0)


@pytest.mark.parametrize("plan", PLANS[:2])
def test_configurations_go_on_as_trials_would_that_have_their_means(plan: Plan) -> None:
    def value(configuration: int, repeat: int, unit: int) -> float:
        return drawn(f"{configuration}/{unit}") + (-1, 0, 1)[repeat] * 10.0 * drawn(f"{repeat}/{configuration}")

    def means(configuration: int, repeat: int, unit: int) -> float:
        return mean(value(configuration, each, unit) for each in range(3))

    found, alone = told(plan, 3, value, 1), told(plan, 1, means, 1)
    reached, expected = found["reached"], alone["reached"]
    assert isinstance(reached, dict)
    assert isinstance(expected, dict)
    assert [reached[f"t{number:03d}"] for number in range(3 * plan.trials)] == [
        expected[f"t{number // 3:03d}"] for number in range(3 * plan.trials)
    ]


def test_one_that_fails_takes_the_others_out_at_their_rung() -> None:
    core = Repeated(Hyperband(lay_out(3, 1, 3), maximize=True), repeated(lay_out(3, 1, 3), 2))
    for number in range(4):
        core.add(f"t{number}")
    core.fail("t0")
    assert list(core.runnable()) == ["t1", "t2", "t3"]
    assert core.report("t1", 1, 0.9) == {"t0", "t1"}
    assert (core.state("t0"), core.state("t1"), core.state("t2")) == (State.FAILED, State.STOPPED, State.TRAINING)


# ---- the winner


def test_the_best_is_of_the_best_mean_and_what_lost_a_repeat_is_lost() -> None:
    values = [0.9, 0.1, 0.6, 0.5, 0.99, 0.99]
    standings = [
        Standing(value=value, resource=3, number=number, lost=FAILED if number == 5 else 0)
        for number, value in enumerate(values)
    ]
    found = ranks(Ranking(maximize=True), standings, 2)
    assert best_of(standings, lambda each: found[each.number]) == standings[2]
    assert sorted(range(6), key=found.__getitem__) == [2, 3, 0, 1, 4, 5]
    incomplete = ranks(Ranking(maximize=True), standings[:3], 2)
    assert best_of(standings[:3], lambda each: incomplete[each.number]) == standings[0]


# ---- on gangs


def curve(assignment: Assignment, step: int) -> float:
    """Of configuration and repeat; some fail, and some diverge."""
    found = drawn(f"{assignment.trial_id}/{step}")
    if found < 0.004:
        raise ValueError("a trial's own error")
    if found < 0.008:
        raise DivergedError("the loss is nan")
    return float(assignment.hyperparameters["eta"]) * (1 - 0.9**step) + 0.2 * found


@pytest.mark.parametrize("plan", PLANS)
def test_the_same_trials_stop_at_the_same_rungs_for_any_number_of_gangs(plan: Plan) -> None:
    whole = repeated(plan, 3)
    one, _, _ = simulate(plan=whole, parallel=1, curve=curve, repeats=3)
    runs = list(one.runs.values())
    assert len(runs) == whole.trials
    assert one.trained <= whole.resource
    for first, other in pairwise(runs):
        if other.number % 3:
            assert (first.hyperparameters, first.bracket) == (other.hyperparameters, other.bracket)
            assert first.seed != other.seed
    for parallel in (2, 4, 8):
        again, _, _ = simulate(plan=whole, parallel=parallel, curve=curve, repeats=3, losses=frozenset({2, 9}))
        assert outcome(again) == outcome(one)
