"""A search that criteria or limits end, broken off and taken up again, ends as one that was planned so."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import given, settings, strategies as st

from hpo.cost.limits import Limits
from hpo.cost.prices import Tariff
from hpo.search.trial import UNTUNED
from hpo.strategies.completion_criteria import FIRST_FAILURES, TuningJobCompletionCriteriaConfig
from hpo.strategies.hyperband import HyperbandStrategy, Plan, run_all
from hpo.strategies.random_strategy import RandomStrategy
from hpo.strategies.strategy import Strategy
from tests.support.broken_off import (
    PLANS,
    Service,
    answer,
    check_bills,
    ends_as,
    luck,
    undisturbed,
)
from tests.support.hpo.jobs.replay_and_limits import CRITERIA, counted
from tests.support.properties import examples
from tests.support.refusals import missing_names
from tests.support.simulated import WORKERS
from trainers.gangs.messages import Assignment


@cache
def complete(plan: Plan, criterion: int) -> dict[str, Any]:
    """What it comes to where one gang serves it and nothing breaks it off."""
    alone = Service(plan=plan, parallel=1, options={"completion": CRITERIA[criterion]})
    return counted(alone, alone.drive())


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(PLANS),
    st.sampled_from(range(len(CRITERIA))),
    st.integers(1, 6),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=4),
)
def test_criteria_are_met_at_the_same_trial_for_any_number_of_gangs_and_after_any_resume(
    plan: Plan, criterion: int, parallel: int, ends: list[tuple[bool, int]]
) -> None:
    expected = complete(plan, criterion)
    service = Service(plan=plan, parallel=parallel, options={"completion": CRITERIA[criterion]})
    controller = None
    for killed, after in ends:
        controller = service.drive(dies_at=after) if killed else service.drive(stop_at=after)
        if controller is not None and not (controller.stopped and not controller.completed):
            break
    else:
        controller = service.drive()
    assert counted(service, controller) == expected
    if expected["best"] is not None:
        assert service.rows.trials[expected["best"]].checkpoint in service.disk


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from([*PLANS, run_all(5, 3), run_all(4, 3)]),
    st.sampled_from([None, TuningJobCompletionCriteriaConfig(3), TuningJobCompletionCriteriaConfig(5)]),
    st.integers(1, 12),
    st.lists(st.tuples(st.booleans(), st.integers(1, 20)), max_size=3),
    st.booleans(),
    st.dictionaries(st.integers(0, 12), st.integers(1, 3)),
    st.booleans(),
)
def test_a_job_whose_first_trials_all_fail_ends_alike_for_any_number_of_gangs_and_after_any_resume(
    plan: Plan,
    criteria: TuningJobCompletionCriteriaConfig | None,
    parallel: int,
    ends: list[tuple[bool, int]],
    exact: bool,
    failing: dict[int, int],
    first: bool,
) -> None:
    """Trials behind them may train to their end before the fifth fails, and fail before the first does."""
    failing = {**dict.fromkeys(range(FIRST_FAILURES if first else 0), 1), **failing}

    def breaks(assignment: Assignment, step: int) -> float:
        if assignment.trial_id != UNTUNED and failing.get(int(assignment.trial_id[4:])) == step:
            raise ValueError("no such objective")
        return luck(assignment, step)

    options = {"exact_from": lambda hyperparameters: exact, "completion": criteria}
    alone = Service(plan=plan, parallel=1, curve=breaks, options=options)
    undisturbed = alone.drive()
    service = Service(plan=plan, parallel=parallel, curve=breaks, options=options)
    controller = None
    for killed, after in ends:
        controller = service.drive(**{"dies_at" if killed else "stop_at": after})
        if controller is not None and (controller.trials.verdict or not controller.stopped):
            break
    else:
        controller = service.drive()
    assert undisturbed is not None
    assert controller is not None
    assert counted(service, controller) == counted(alone, undisturbed)
    assert controller.trials.hopeless == undisturbed.trials.hopeless
    if undisturbed.trials.hopeless or criteria is None:
        assert answer(service, controller) == answer(alone, undisturbed)
    check_bills(service, controller)


PLANNED = [HyperbandStrategy(max_resource=9, min_resource=1), RandomStrategy()]


@settings(max_examples=examples(80), deadline=None)
@given(
    st.sampled_from(PLANNED),
    st.lists(st.integers(1, 14), min_size=2, max_size=4),
    st.sampled_from([None, CRITERIA[1], CRITERIA[3]]),
    st.integers(1, 6),
    st.lists(st.sampled_from(["its end", "death", "stop"]), min_size=4, max_size=4),
    st.integers(0, 40),
)
def test_a_job_of_more_trials_than_it_began_with_keeps_its_first_ones_and_ends_as_one_planned_so(
    planned: Strategy,
    steps: list[int],
    criteria: TuningJobCompletionCriteriaConfig | None,
    parallel: int,
    ends: list[str],
    at: int,
) -> None:
    """Raised again and again, at whatever moment."""
    plans = [planned.plan({}, steps[0], 9)]
    for more in steps[1:]:
        plans.append(planned.grown(plans[-1], plans[-1].trials + more))
    options = {"completion": criteria}
    small, whole = (Service(plan=plan, parallel=1, options=options) for plan in (plans[0], plans[-1]))
    first = answer(small, small.drive())
    undisturbed = whole.drive()
    expected, wanted = answer(whole, undisturbed), counted(whole, undisturbed)
    service, controller = Service(plan=plans[0], parallel=parallel, options=options), None
    for service.plan, end in zip(plans, [*ends[: len(plans) - 1], "its end"], strict=True):
        controller = service.drive(**{"its end": {}, "death": {"dies_at": at}, "stop": {"stop_at": at}}[end])
        if controller is not None and controller.completed:
            break  # A job that has found enough is not raised.
    assert counted(service, controller) == wanted
    if criteria is not None:
        return
    assert answer(service, controller) == expected
    assert first["trials"].items() <= expected["trials"].items()
    if planned.rations:
        begun = {place: cut for place, cut in expected["cuts"].items() if place[0] < len(plans[0].brackets)}
        assert begun == first["cuts"]
    assert controller is not None
    check_bills(service, controller)


CHEAP = Tariff(per_worker_hour=3600.0, currency="EUR")
"""A worker-second costs 1."""


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(PLANS),
    st.integers(1, 6),
    st.lists(st.tuples(st.booleans(), st.floats(0.1, 60.0)), min_size=1, max_size=5),
)
def test_a_job_that_limits_stopped_ends_under_larger_ones_as_one_without(
    plan: Plan, parallel: int, raises: list[tuple[bool, float]]
) -> None:
    """In the middle of brackets, too, whose rungs are then decided later."""
    service = Service(plan=plan, parallel=parallel)
    seconds, cost = 10.0, 30.0
    for time_is_short, more in raises:
        seconds, cost = (seconds + more, cost) if time_is_short else (seconds, cost + WORKERS * more)
        service.options["limits"] = Limits(max_seconds=seconds, max_cost=cost, tariff=CHEAP)
        stopped = service.drive()
        assert stopped is not None
        if not stopped.stopped:
            break
        assert len(missing_names(stopped.stopped, "max_runtime_in_seconds", "max_cost")) == 1, stopped.stopped
    service.options["limits"] = Limits(max_seconds=1e6, max_cost=1e6, tariff=CHEAP)
    ends_as(service, undisturbed(plan, 1))
