"""Promotions of ASHA: its laws for any order of any values, and the end that ours has."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from hpo.ranking import Ranking
from hpo.strategies.asha.promotions import Promotions, grown, lay_out_asynchronous
from hpo.strategies.hyperband import Plan, State
from tests.support.properties import examples
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError


def driven(plan: Plan, seed: int, gangs: int, *, lost: float = 0.0, maximize: bool = True) -> tuple[Promotions, int]:
    """A whole search in a random order, and its units; every promotion is checked as it is made."""
    dice, core, units = random.Random(seed), Promotions(plan, maximize=maximize), 0
    began: dict[str, int] = {}
    busy: list[str] = []
    came: dict[tuple[int, int], dict[str, tuple[float, int]]] = {}
    gone: Counter[tuple[int, int]] = Counter()
    added = 0
    while True:
        while len(busy) < gangs:
            name = core.promote()
            if name is None and added < plan.trials:
                name, added = f"t{added:03d}", added + 1
                core.add(name)
            elif name is not None:
                check_promoted(core, name, came, gone, added)
            if name is None:
                break
            busy.append(name)
        if not busy:
            return core, units
        name = busy.pop(dice.randrange(len(busy)))
        rung, bracket = core.milestone(name), core.bracket(name)
        if dice.random() < lost:
            core.fail(name)
            gone[bracket, rung] += 1
            continue
        value = math.nan if dice.random() < lost else float(dice.randrange(6))
        units += rung - began.get(name, 0)
        began[name] = rung
        came.setdefault((bracket, rung), {})[name] = (value, int(name[1:]))
        core.report(name, rung, value)


def check_promoted(core: Promotions, name: str, came: dict, gone: Counter, added: int) -> None:
    """It is among the best third that came to its rung, or the best of the last rung that a bracket came to."""
    bracket = core.bracket(name)
    rungs = core.plan.brackets[bracket].rungs
    rung = rungs[rungs.index(core.milestone(name)) - 1]
    there = came[bracket, rung]
    ranking = Ranking(maximize=core._ranking.maximize)
    ranked = sorted(there, key=lambda each: ranking.rank(there[each][0], 0, there[each][1]))
    best = (len(there) + gone[bracket, rung]) // core.plan.eta
    assert math.isfinite(there[name][0])
    if name not in ranked[:best]:
        assert added >= sum(each.sizes[0] for each in core.plan.brackets[: bracket + 1])
        assert name == ranked[0]


PLANS = [
    lay_out_asynchronous(30, 1, 27),
    lay_out_asynchronous(7, 2, 30, 2),
    lay_out_asynchronous(1, 1, 9),
    lay_out_asynchronous(20, 5, 5),
    grown(lay_out_asynchronous(10, 1, 9), 25),
]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(PLANS),
    st.integers(0, 10_000),
    st.integers(1, 20),
    st.sampled_from([0.0, 0.1, 0.7]),
    st.booleans(),
)
def test_in_any_order_of_any_values_it_promotes_the_best_and_comes_to_its_end_within_its_plan(
    plan: Plan, seed: int, gangs: int, lost: float, maximize: bool
) -> None:
    core, units = driven(plan, seed, gangs, lost=lost, maximize=maximize)
    states = Counter(core.state(f"t{number:03d}") for number in range(plan.trials))
    assert states[State.TRAINING] == states[State.WAITING] == 0
    assert units <= plan.resource
    for cut in core.cuts:
        bracket = plan.brackets[cut.bracket]
        assert len(cut.went_on) <= bracket.sizes[bracket.rungs.index(cut.resource) + 1]
    if not lost:
        assert states[State.FINISHED] >= len(plan.brackets)


@pytest.mark.parametrize("eta", [2, 3, 4])
def test_the_greatest_cost_is_that_of_values_that_always_rise(eta: int) -> None:
    plan = lay_out_asynchronous(17, 1, eta**2, eta)
    core, units = Promotions(plan, maximize=True), 0
    for number in range(plan.trials):
        name: str | None = f"t{number}"
        core.add(f"t{number}")
        start = 0
        while name is not None:
            rung = core.milestone(name)
            units += rung - start
            core.report(name, rung, float(number))
            name, start = core.promote(), rung
            assert name in (None, f"t{number}")
    assert units == plan.resource


def test_one_gang_and_nine_trials() -> None:
    """The best of a rung goes on with every third trial that comes there, before another is begun."""
    core = Promotions(lay_out_asynchronous(9, 1, 9), maximize=False)
    losses = [3, 1, 2, 6, 4, 5, 9, 7, 8]
    order = []
    added = 0
    while True:
        name = core.promote()
        if name is None and added == 9:
            break
        if name is None:
            name, added = f"t{added}", added + 1
            core.add(name)
        order.append((name, core.milestone(name)))
        core.report(name, core.milestone(name), losses[int(name[1:])])
    assert order == [
        *[("t0", 1), ("t1", 1), ("t2", 1), ("t1", 3)],
        *[("t3", 1), ("t4", 1), ("t5", 1), ("t2", 3)],
        *[("t6", 1), ("t7", 1), ("t8", 1), ("t0", 3), ("t1", 9)],
    ]
    assert [(cut.resource, cut.went_on) for cut in core.cuts] == [(1, ("t1", "t2", "t0")), (3, ("t1",))]


def test_a_trial_that_was_passed_over_goes_on_later() -> None:
    core = Promotions(lay_out_asynchronous(6, 1, 3), maximize=True)
    for number, value in enumerate([3.0, 2.0, 1.0]):
        core.add(f"t{number}")
        core.report(f"t{number}", 1, value)
    assert core.promote() == "t0"
    for number in (3, 4, 5):
        core.add(f"t{number}")
        core.report(f"t{number}", 1, 0.0)
    assert core.promote() == "t1"


def test_trials_that_are_better_than_all_before_them_do_not_all_go_on() -> None:
    """As a model suggests them: one in three has a place, and it is not the one that a better one finds taken."""
    core = Promotions(lay_out_asynchronous(9, 1, 9), maximize=True)
    promoted = []
    for number in range(9):
        core.add(f"t{number}")
        core.report(f"t{number}", 1, float(number))
        while (name := core.promote()) is not None:
            promoted.append((name, core.milestone(name)))
            core.report(name, core.milestone(name), float(name[1:]))
    assert promoted == [("t2", 3), ("t5", 3), ("t8", 3), ("t8", 9)]


def test_of_equal_values_the_first_trial_goes_on() -> None:
    core = Promotions(lay_out_asynchronous(3, 1, 3), maximize=True)
    for name in ("a", "b", "c"):
        core.add(name)
    for name in ("c", "b", "a"):
        core.report(name, 1, 1.0)
    assert core.promote() == "a"


def test_what_was_lost_on_its_way_counts_as_the_worst() -> None:
    core = Promotions(lay_out_asynchronous(9, 1, 3), maximize=True)
    for name in ("a", "b", "c"):
        core.add(name)
    core.fail("a")
    core.report("b", 1, math.nan)
    assert core.promote() is None
    core.report("c", 1, 0.0)
    assert (core.promote(), core.state("b")) == ("c", State.STOPPED)


def test_results_of_a_rung_told_again_change_nothing() -> None:
    core = Promotions(lay_out_asynchronous(3, 1, 3), maximize=True)
    for name in ("a", "b", "c"):
        core.add(name)
        core.report(name, 1, 1.0)
    assert core.promote() == "a"
    assert core.report("a", 1, 9.0) == set()
    assert core.report("b", 1, 9.0) == set()
    assert (core.state("a"), core.milestone("a"), core.promote()) == (State.TRAINING, 3, None)


def test_a_search_whose_searcher_has_no_more_ends() -> None:
    core = Promotions(lay_out_asynchronous(9, 1, 9), maximize=True)
    for name in ("a", "b"):
        core.add(name)
        assert core.report(name, 1, 1.0) == set()
    assert core.promote() is None
    assert core.close() == set()
    assert core.promote() == "a"
    assert core.report("a", 3, 1.0) == set()
    assert core.promote() == "a"
    assert core.report("a", 9, 1.0) == {"a", "b"}
    assert core.state("b") is State.STOPPED


def test_a_plan_takes_no_more_trials_than_it_has_places_for() -> None:
    core = Promotions(lay_out_asynchronous(1, 1, 9), maximize=True)
    core.add("a")
    with refuses(ConfigurationError, field="plan", value=1, remedy="max_jobs"):
        core.add("b")


def test_a_plan_comes_back_from_its_record_and_grows_at_its_end() -> None:
    plan = lay_out_asynchronous(10, 1, 9)
    assert Plan.from_json(plan.to_json()) == plan
    larger = grown(plan, 25)
    assert larger.brackets[0] == plan.brackets[0]
    assert (larger.trials, larger.brackets[1]) == (25, lay_out_asynchronous(15, 1, 9).brackets[0])
