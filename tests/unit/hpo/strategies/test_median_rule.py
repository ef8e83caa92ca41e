"""The median rule: who is stopped, whatever the order of reports; and no trial waits in vain."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hpo.strategies.hyperband import Bracket, Plan, State, lay_out, run_all
from hpo.strategies.median_rule import (
    FEWEST,
    MedianRule,
    median_rule_warnings,
    with_median_rule,
    without_median_rule,
)
from tests.support.hpo.strategies.median_rule import PLAN, RUNGS, curve_of, searched
from tests.support.properties import examples
from tests.support.refusals import missing_names, refuses
from trainers.errors import ConfigurationError


@given(st.integers(1, 100), st.integers(1, 1000))
def test_the_plan_has_the_rungs_and_the_greatest_cost_of_all_to_the_end(trials: int, units: int) -> None:
    flat = run_all(trials, units)
    plan = with_median_rule(flat)
    assert (plan.trials, plan.resource, plan.full_resource) == (trials, trials * units, trials * units)
    assert plan.assignments <= 3 * trials
    for bracket in plan.brackets:
        assert list(bracket.rungs) == sorted(set(bracket.rungs))
        assert bracket.rungs[0] >= 1
        assert bracket.rungs[-1] == units
    assert without_median_rule(plan) == flat
    assert Plan.from_json(plan.to_json()) == plan
    assert "apart" not in flat.to_json()
    assert Plan.from_json(flat.to_json()) == flat == without_median_rule(flat)


def test_trials_are_compared_at_a_ninth_and_a_third() -> None:
    assert RUNGS == (3, 9, 27)
    assert with_median_rule(run_all(4, 5)).brackets == (Bracket(rungs=(1, 5), sizes=(4, 4)),)


def test_a_plan_with_rungs_of_its_own_is_refused() -> None:
    with refuses(ConfigurationError, field="early_stopping_type", value="Auto", remedy=("rungs", "Off")):
        with_median_rule(lay_out(9, 1, 9))


@pytest.mark.parametrize(
    ("trials", "units", "names"),
    [
        (9, 2, ("early_stopping_type", "Auto", 2, 3, "Off")),
        (3, 27, ("early_stopping_type", "Auto", "max_jobs", 3, "Off")),
        (4, 3, ()),
    ],
)
def test_a_job_in_which_no_trial_can_be_stopped_warns(trials: int, units: int, names: tuple[object, ...]) -> None:
    warnings = median_rule_warnings(with_median_rule(run_all(trials, units)))
    assert [missing_names(warning, *names) for warning in warnings] == [[]] * bool(names)
    assert not median_rule_warnings(run_all(trials, units))


def by_definition(curve: Callable[[int, int], float], trials: int, maximize: bool, failed: set[tuple[int, int]]) -> Any:
    """How far each trial gets: one after the other, as the paper's sentence says it."""
    sign, reached = (1 if maximize else -1), []
    for number in range(trials):
        end = 0
        for rung in RUNGS:
            if (number, rung) in failed:
                break
            end = rung
            values = [sign * curve(number, step) for step in range(1, rung + 1)]
            averages = [
                sum(sign * curve(other, step) for step in range(1, rung + 1)) / rung
                for other in range(number)
                if reached[other] >= rung
            ]
            if rung != RUNGS[-1] and len(averages) >= FEWEST and max(values) < median(averages) - 1e-12:
                break
        reached.append(end)
    return reached


@settings(max_examples=examples(150))
@given(
    st.integers(0, 10**6),
    st.booleans(),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sets(st.tuples(st.integers(0, 11), st.sampled_from(RUNGS)), max_size=4),
    st.randoms(use_true_random=False),
)
def test_the_same_trials_are_stopped_in_whatever_order_reports_come(
    seed: int, maximize: bool, trials: int, parallel: int, failed: set[tuple[int, int]], order: random.Random
) -> None:
    """Also with all that may train in training at once, and with trials that fail on their way to a rung."""
    curve = curve_of(seed)
    core = MedianRule(with_median_rule(run_all(12, 27)), maximize=maximize)
    at: dict[str, int] = {}
    while True:
        able = list(core.runnable())[:parallel]
        assert [int(name) for name in able] == sorted(map(int, able))
        choices = [*able, *(["new"] if len(at) < trials and len(able) < parallel else [])]
        if not choices:
            break
        name = order.choice(choices)
        if name == "new":
            name = str(len(at))
            at[name] = 0
            assert core.add(name) == 0
            continue
        rung = core.milestone(name)
        if (int(name), rung) in failed:
            core.fail(name)
            continue
        for step in range(at[name] + 1, rung + 1):
            core.report(name, step, curve(int(name), step))
        at[name] = rung
    core.close()
    assert all(core.state(name) not in (State.TRAINING, State.WAITING) for name in at)
    assert [at[str(number)] for number in range(trials)] == by_definition(curve, trials, maximize, failed)
    stopped = [name for cut in core.cuts for name in cut.stopped]
    assert sorted(stopped) == sorted(name for name in at if core.state(name) is State.STOPPED)
    assert len(core.cuts) <= len(RUNGS) - 1


def test_reports_that_come_again_do_not_count_again() -> None:
    once, twice = (MedianRule(PLAN, maximize=True) for _ in range(2))
    for core, times in ((once, 1), (twice, 2)):
        for number in range(12):
            core.add(str(number))
            for step in range(1, 28):
                for _ in range(times):
                    core.report(str(number), step, curve_of(3)(number, step))
    assert [once.state(str(number)) for number in range(12)] == [twice.state(str(number)) for number in range(12)]
    assert State.STOPPED in [once.state(str(number)) for number in range(12)]
    assert once.cuts == twice.cuts


def test_a_plan_that_is_full_takes_no_more_trials() -> None:
    core = MedianRule(with_median_rule(run_all(1, 9)), maximize=True)
    core.add("a")
    with refuses(ConfigurationError, field="plan", value=1, remedy="max_jobs"):
        core.add("b")


def test_brackets_of_a_plan_follow_each_other() -> None:
    flat = Plan(brackets=(Bracket(rungs=(9,), sizes=(2,)), Bracket(rungs=(9,), sizes=(3,))), max_resource=9)
    core = MedianRule(with_median_rule(flat), maximize=True)
    assert [core.add(name) for name in "abcde"] == [0, 0, 1, 1, 1]
    for name in "abcde":
        for step in range(1, 10):
            core.report(name, step, 5.0 - ord(name))
    assert [(cut.bracket, cut.resource, cut.went_on, cut.stopped) for cut in core.cuts] == [
        (0, 1, ("a", "b"), ()),
        (0, 3, ("a", "b"), ()),
        (1, 1, ("c",), ("d", "e")),
        (1, 3, ("c",), ()),
    ]


def test_it_saves_and_stops_what_is_behind() -> None:
    _, gangs, controller = searched(5, 4)
    assert controller.trained < 0.8 * PLAN.full_resource
    assert gangs.served[-1].stop == PLAN.max_resource
