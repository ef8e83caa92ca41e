"""Trials that have their beginning in common, on simulated gangs: the answer is that of each trained for itself."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler

from hpo.forks.effects import Effects
from hpo.ranges import CategoricalParameter
from hpo.search import trials
from hpo.search.trial import TrialRun
from hpo.strategies.completion_criteria import TuningJobCompletionCriteriaConfig
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.median_rule import with_median_rule
from hpo.strategies.repeats import repeated
from tests.support import broken_off
from tests.support.broken_off import Service, Spoiling, ends_as
from tests.support.simulated_schedules import (
    EFFECTS,
    RANGES,
    Apart,
    Counted,
    Models,
    Schedules,
    Told,
    answer,
    apart,
    run,
    units,
)

PLANS = st.one_of(
    st.builds(lambda jobs, most: lay_out(jobs, 1, most), st.integers(1, 30), st.integers(3, 12)),
    st.builds(run_all, st.integers(1, 15), st.integers(1, 10)),
)


@settings(max_examples=80, deadline=None)
@given(
    PLANS,
    st.sampled_from([1, 2, 4, 8]),
    st.frozensets(st.integers(0, 60), max_size=4),
    st.sampled_from([0.0, 0.02]),
    st.sampled_from([1, 2]),
)
@example(run_all(12, 8), 4, frozenset({0}), 0.0, 1)
def test_the_answer_is_that_of_trials_that_train_for_themselves(
    plan: Plan, parallel: int, losses: frozenset[int], luck: float, repeats: int
) -> None:
    plan = repeated(plan, repeats)
    options = {"repeats": repeats, "luck": luck}
    whole, alone, expected = apart(plan, parallel=1, **options)
    controller, gangs, record = run(plan, parallel=parallel, losses=losses, max_attempts=9, **options)
    assert answer(controller, record) == answer(whole, expected)
    if not losses and not luck:
        assert units(gangs) + controller.trials.sharing.units == units(alone)
        assert units(gangs) == units(run(plan, parallel=1, **options)[1]), "nothing is trained twice"
    assert all(not each.lends for each in controller.runs.values())


@pytest.mark.parametrize("parallel", [1, 2, 3])
def test_a_search_over_schedules_trains_a_common_beginning_once(parallel: int) -> None:
    """Decay at 10, 20 or 30 of 40 units: 10, and 30 more; 10 more for the other two, and 20 more; and 20 more."""
    ranges = {"decay_at": CategoricalParameter([10, 20, 30])}
    effects = Effects.of({"decay_at": "decay_at"}, ranges, {})
    order = iter([10, 20, 30])
    controller, gangs, _ = run(
        run_all(3, 40), effects=effects, parallel=parallel, decode=lambda suggested: {"decay_at": next(order)}
    )
    assert units(gangs) == 10 + 30 + 10 + 20 + 20
    assert controller.trained == 3 * 40
    assert controller.trials.sharing.units == 30
    first, second, third = controller.runs.values()
    assert (first.common, first.shared) == (None, 0)
    assert second.common is not None
    assert (second.common.parent, second.common.resource, second.shared) == (first.id, 10, 10)
    assert third.common is not None
    assert (third.common.parent, third.common.resource, third.shared) == (second.id, 20, 20)
    begun = {(each.start, each.stop) for each in gangs.served}
    assert begun == {(0, 10), (10, 40), (10, 20), (20, 40), (20, 30), (30, 40)}


BROKEN = [lay_out(17, 1, 9), run_all(12, 8), with_median_rule(run_all(12, 9))]


def service(
    plan: Plan, parallel: int, *, exact: bool, luck: float = 0.0, spoil: int | None = None, **options: Any
) -> Service:
    models = Models(EFFECTS, luck, exact=exact)
    more: dict[str, Any] = {"models": models, "times": Counter(), "spoilt": set(), "seed": spoil}
    return Service(
        plan=plan,
        parallel=parallel,
        searcher=Schedules,
        curve=models,
        gangs=type("CountedAlready", (Counted,) if spoil is None else (Counted, Spoiling), more),
        options={"ranges": RANGES, "effects": EFFECTS, "exact_from": lambda hyperparameters: exact, **options},
    )


@cache
def undisturbed(plan: Plan, exact: bool, luck: float) -> dict[str, Any]:
    whole = service(plan, 1, exact=exact, luck=luck)
    return broken_off.answer(whole, whole.drive())


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(BROKEN),
    st.sampled_from([1, 2, 4]),
    st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 6)), max_size=4),
    st.booleans(),
    st.sampled_from([0.0, 0.01]),
)
def test_broken_off_anywhere_it_ends_alike_and_trains_nothing_twice(
    plan: Plan, parallel: int, ends: list[tuple[bool, int, int]], exact: bool, luck: float
) -> None:
    search = service(plan, parallel, exact=exact, luck=luck)
    unwritten = 0
    for killed, after, lost in ends:
        ended = search.drive(**{"dies_at" if killed else "stop_at": after})
        if ended is None:
            search.rows.lose(lost)
            unwritten += lost
    controller = ends_as(search, undisturbed(plan, exact, luck))
    assert not any(row.details.get("lends") for row in search.rows.trials.values())
    times = search.gangs.times  # type: ignore[attr-defined]
    if not unwritten:
        # Trials of two brackets are cut at other units, and have nothing in common.
        assert max(times.values(), default=0) <= 1 or (exact and len(plan.brackets) > 1)
        assert sum(row.details.get("shared_units", 0) for row in search.rows.trials.values()) == (
            controller.trials.sharing.units
        )
    for row in search.rows.trials.values():
        assert not row.parent or search.rows.trials[row.parent].number < row.number


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(BROKEN),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 1000),
    st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=3),
    st.booleans(),
)
def test_checkpoints_that_are_spoilt_after_they_were_shared_are_trained_again(
    plan: Plan, parallel: int, seed: int, ends: list[tuple[bool, int]], exact: bool
) -> None:
    search = service(plan, parallel, exact=exact, spoil=seed)
    for killed, after in ends:
        search.drive(**{"dies_at" if killed else "stop_at": after})
    ends_as(search, undisturbed(plan, exact, 0.0))


@pytest.mark.parametrize("plan", BROKEN)
@pytest.mark.parametrize("target", [0.6, 0.8, 0.95])
def test_a_job_is_complete_at_the_same_trial(plan: Plan, target: float) -> None:
    criteria = TuningJobCompletionCriteriaConfig(target_objective_metric_value=target)
    found = []
    for parallel in (1, 3):
        search = service(plan, parallel, exact=False, completion=criteria)
        controller = search.drive()
        assert controller is not None
        found.append((controller.trials.verdict, controller.best() and controller.best().id))  # type: ignore[union-attr]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "Sharing", Apart)
        controller = service(plan, 1, exact=False, completion=criteria).drive()
        assert controller is not None
        found.append((controller.trials.verdict, controller.best() and controller.best().id))  # type: ignore[union-attr]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("parallel", [1, 3])
def test_where_decisions_follow_from_the_order_of_results_one_that_waits_has_a_place(parallel: int) -> None:
    """So no trial begins that would not have begun so early if each trained for itself."""
    begun: list[int] = []

    class Watched(Told):
        def trial(self, run: TrialRun) -> None:
            if run.trial.status == Trial.RUNNING:
                running.add(run.id)
            else:
                running.discard(run.id)
            begun.append(len(running))

    running: set[str] = set()
    controller, _, _ = run(run_all(9, 6), parallel=parallel, scheduler=FIFOScheduler(), in_order=True, record=Watched())
    assert max(begun) <= parallel
    assert controller.trials.sharing.units > 0
