"""Trials that have their beginning in common, on simulated gangs: the answer is that of each trained for itself."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import example, given, settings, strategies as st

from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.repeats import repeated
from tests.support import broken_off
from tests.support.broken_off import ends_as
from tests.support.hpo.search.sharing import BROKEN, service
from tests.support.properties import examples
from tests.support.simulated_schedules import (
    answer,
    apart,
    run,
    units,
)

PLANS = st.one_of(
    st.builds(lambda jobs, most: lay_out(jobs, 1, most), st.integers(1, 30), st.integers(3, 12)),
    st.builds(run_all, st.integers(1, 15), st.integers(1, 10)),
)


@settings(max_examples=examples(80), deadline=None)
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


@cache
def undisturbed(plan: Plan, exact: bool, luck: float) -> dict[str, Any]:
    whole = service(plan, 1, exact=exact, luck=luck)
    return broken_off.answer(whole, whole.drive())


@settings(max_examples=examples(60), deadline=None)
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


@settings(max_examples=examples(60), deadline=None)
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
