"""Trials that have their beginning in common, under every strategy: the answer is that of each trained for itself."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from ray.tune.schedulers import TrialScheduler

from hpo.forks.effects import Effects
from hpo.strategies.asha.asha_scheduler import AshaScheduler
from hpo.strategies.asha.open_history import OpenHistory
from hpo.strategies.asha.promotions import lay_out_asynchronous
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.median_rule import with_median_rule
from hpo.strategies.model_strategy import lag_for
from hpo.strategies.repeats import repeated
from tests.support import broken_off
from tests.support.broken_off import Service, hyperband
from tests.support.properties import examples
from tests.support.simulated import METRIC
from tests.support.simulated_schedules import (
    CONDITIONAL,
    EFFECTS,
    RANGES,
    Attentive,
    Counted,
    Models,
    Schedules,
    alone,
    answer,
    apart,
    rate,
    run,
    units,
)

LATE = dict.fromkeys(("schedule", "decay_at", "factor"), "decay_at")
STATICS: list[dict[str, Any]] = [{}, {"decay_at": 5, "factor": 1.0}, {"decay_at": 100, "factor": 1.0}, {"decay_at": 0}]
"""What a trial without a schedule has in its place: nothing, a unit of its own, none that comes, and the beginning."""

PLANS = st.one_of(
    st.builds(lambda jobs, most: lay_out(jobs, 1, most), st.integers(1, 20), st.integers(3, 12)),
    st.builds(run_all, st.integers(1, 12), st.integers(1, 10)),
    st.builds(lambda jobs, most: with_median_rule(run_all(jobs, most)), st.integers(1, 15), st.integers(3, 12)),
)
ASYNCHRONOUS = st.builds(lambda jobs, most: lay_out_asynchronous(jobs, 1, most), st.integers(2, 20), st.integers(3, 12))


def conditional(static: dict[str, Any], plan: Plan, *, learns: bool = False) -> dict[str, Any]:
    """The options of a job whose schedules have ranges that not all trials have."""
    return {
        "ranges": CONDITIONAL,
        "static": static,
        "effects": Effects.of(LATE, CONDITIONAL, static),
        "seen": rate,
        "searcher": Attentive(plan, ranges=CONDITIONAL) if learns else Schedules(CONDITIONAL),
    }


def asynchronous(plan: Plan) -> TrialScheduler:
    return AshaScheduler(plan, metric=METRIC, mode="max")


@settings(max_examples=examples(50), deadline=None)
@given(
    PLANS,
    st.sampled_from([1, 2, 4, 8]),
    st.frozensets(st.integers(0, 60), max_size=4),
    st.sampled_from([0.0, 0.02]),
    st.sampled_from([1, 3]),
    st.booleans(),
    st.sampled_from([None, *STATICS]),
    st.booleans(),
)
@example(with_median_rule(run_all(12, 9)), 4, frozenset({2}), 0.02, 3, False, None, True)
@example(run_all(12, 9), 4, frozenset(), 0.0, 1, True, STATICS[1], False)
def test_the_answer_is_that_of_trials_that_train_for_themselves(
    plan: Plan,
    parallel: int,
    losses: frozenset[int],
    luck: float,
    repeats: int,
    learns: bool,
    static: dict[str, Any] | None,
    best_value: bool,
) -> None:
    """Of Hyperband, Random, Bayesian and the median rule, with conditions and repeats."""
    whole_plan, lag = repeated(plan, repeats), lag_for(4)

    def options() -> dict[str, Any]:
        own = {} if static is None else conditional(static, plan, learns=learns)
        searcher = {"searcher": Attentive(plan, lag=lag)} if learns and static is None else {}
        return {"repeats": repeats, "luck": luck, "best_value": best_value, **searcher, **own}

    whole, single, expected = apart(whole_plan, parallel=1, **options())
    controller, gangs, record = run(whole_plan, parallel=parallel, losses=losses, max_attempts=9, **options())
    assert answer(controller, record) == answer(whole, expected)
    seeds = [each.seed for each in controller.runs.values()]
    assert all(
        len({*seeds[at : at + repeats]}) == len(seeds[at : at + repeats]) for at in range(0, len(seeds), repeats)
    )
    if not losses and not luck:
        assert units(gangs) + controller.trials.sharing.units == units(single)
        assert units(gangs) == units(run(whole_plan, parallel=1, **options())[1]), "nothing is trained twice"
    assert all(not each.lends for each in controller.runs.values())


def test_trials_share_with_one_whose_condition_is_not_met_until_its_own_unit() -> None:
    """Two that fall at 6, by other factors, and one that never does; its own value says that it does at 5."""
    static = {"decay_at": 5, "factor": 1.0}
    tried = iter([{"schedule": "step", "decay_at": 6, "factor": factor} for factor in (0.1, 0.5)])
    controller, gangs, _ = run(
        run_all(3, 10),
        parallel=1,
        **conditional(static, run_all(3, 10)),
        decode=lambda suggested: {"lr": 0.1, **next(tried, {"schedule": "constant"})},
    )
    assert units(gangs) == 10 + 4 + 5
    assert [each.shared for each in controller.runs.values()] == [0, 6, 5]


# ---- ASHA: its promotions follow from the order of results, a trial's values from its values and number alone


def check_values(values: dict[str, dict[int, float]], controller: Any, models: Models, plan: Plan) -> None:
    """Every value is that of its trial trained for itself, and so is why it came to no more."""
    assert len(controller.runs) == plan.trials
    for each in controller.runs.values():
        own, why = alone(models, each, plan)
        told = values.get(each.id, {})
        assert told == {step: own[step] for step in told}
        if each.failure or each.diverged:
            assert (each.failure or each.diverged) == why
        else:
            assert each.resource == max(told)
            assert each.resource in plan.brackets[0].rungs


@settings(max_examples=examples(60), deadline=None)
@given(
    ASYNCHRONOUS,
    st.sampled_from([1, 2, 4, 8]),
    st.frozensets(st.integers(0, 60), max_size=4),
    st.sampled_from([0.0, 0.02]),
    st.booleans(),
    st.sampled_from([None, *STATICS]),
)
def test_whatever_asha_promotes_each_trial_has_the_values_that_it_has_by_itself(
    plan: Plan,
    parallel: int,
    losses: frozenset[int],
    luck: float,
    learns: bool,
    static: dict[str, Any] | None,
) -> None:
    own = {} if static is None else conditional(static, plan)
    ranges = own.get("ranges", RANGES)
    if learns:
        own["searcher"] = Attentive(plan, ranges=ranges, lag=1, history=OpenHistory(plan))
    options = {"scheduler": asynchronous(plan), "in_order": True, "luck": luck, "max_attempts": 9, **own}
    controller, gangs, record = run(plan, parallel=parallel, losses=losses, **options)
    models = Models(own.get("effects", EFFECTS), luck, seen=own.get("seen"))
    check_values(record.values, controller, models, plan)
    if not losses and not luck:
        assert units(gangs) + controller.trials.sharing.units == controller.trained
    assert all(not each.lends for each in controller.runs.values())


@settings(max_examples=examples(30), deadline=None)
@given(ASYNCHRONOUS, st.sampled_from([0.0, 0.02]), st.booleans())
def test_one_trial_after_another_asha_decides_as_if_each_trained_for_itself(
    plan: Plan, luck: float, learns: bool
) -> None:
    def of(search: Any) -> dict[str, Any]:
        searcher = {"searcher": Attentive(plan, lag=1, history=OpenHistory(plan))} if learns else {}
        options = {"scheduler": asynchronous(plan), "in_order": True, "luck": luck, **searcher}
        controller, _, record = search(plan, parallel=1, **options)
        return answer(controller, record)

    assert of(run) == of(apart)


ENDS = st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 6)), max_size=4)


def service(plan: Plan, parallel: int, luck: float, *, exact: bool, **options: Any) -> Service:
    models = Models(EFFECTS, luck, exact=exact)
    own = {name: options.pop(name) for name in ("scheduler", "searcher") if name in options}
    return Service(
        plan=plan,
        parallel=parallel,
        curve=models,
        gangs=type("CountedAlready", (Counted,), {"models": models, "times": Counter()}),
        options={"ranges": RANGES, "effects": EFFECTS, "exact_from": lambda hyperparameters: exact, **options},
        **{"scheduler": hyperband, "searcher": Schedules, **own},
    )


def drive(search: Service, ends: list[tuple[bool, int, int]]) -> bool:
    """Breaks a search off so often; returns whether all that it came to was written."""
    whole = True
    for killed, after, lost in ends:
        if search.drive(**{"dies_at" if killed else "stop_at": after}) is None:
            search.rows.lose(lost)
            whole = whole and not lost
    return whole


@settings(max_examples=examples(60), deadline=None)
@given(ASYNCHRONOUS, st.sampled_from([1, 2, 4]), ENDS, st.booleans(), st.sampled_from([0.0, 0.01]))
def test_asha_broken_off_anywhere_goes_on_with_the_same_values_and_trains_nothing_twice(
    plan: Plan, parallel: int, ends: list[tuple[bool, int, int]], exact: bool, luck: float
) -> None:
    search = service(plan, parallel, luck, exact=exact, scheduler=asynchronous, in_order=True)
    written = drive(search, ends)
    controller = search.drive()
    values: dict[str, dict[int, float]] = {}
    for (name, step), row in search.rows.reports.items():
        if name in search.rows.trials and search.rows.trials[name].number >= 0:
            values.setdefault(name, {})[step] = row.objective
    check_values(values, controller, Models(EFFECTS, luck, exact=exact), plan)
    assert not any(row.details.get("lends") for row in search.rows.trials.values())
    if written:
        assert max(search.gangs.times.values(), default=0) <= 1  # type: ignore[attr-defined]


MODEL, REPEATED = run_all(9, 8), [repeated(run_all(5, 8), 2), repeated(lay_out(9, 1, 9), 2)]
KINDS: dict[str, dict[str, Any]] = {
    "Bayesian": {"plan": MODEL, "searcher": partial(Attentive, MODEL)},
    "median rule and repeats": {"plan": repeated(with_median_rule(run_all(5, 9)), 2), "repeats": 2},
    "repeats": {"plan": REPEATED[0], "repeats": 2},
    "Hyperband and repeats": {"plan": REPEATED[1], "repeats": 2},
}


@cache
def undisturbed(kind: str, exact: bool, luck: float) -> dict[str, Any]:
    whole = service(**KINDS[kind], parallel=1, exact=exact, luck=luck)
    return broken_off.answer(whole, whole.drive())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from([1, 2, 4]), ENDS, st.booleans(), st.sampled_from([0.0, 0.01]))
def test_broken_off_anywhere_it_ends_alike_and_trains_nothing_twice(
    kind: str, parallel: int, ends: list[tuple[bool, int, int]], exact: bool, luck: float
) -> None:
    search = service(**KINDS[kind], parallel=parallel, exact=exact, luck=luck)
    written = drive(search, ends)
    broken_off.ends_as(search, undisturbed(kind, exact, luck))
    if written and len(KINDS[kind]["plan"].brackets) == 1:
        assert max(search.gangs.times.values(), default=0) <= 1  # type: ignore[attr-defined]
