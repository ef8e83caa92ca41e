"""A search that broke off anywhere, however often, and was taken up again ends as one that never did."""

from __future__ import annotations

import gc
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from hpo.jobs import replay as memory_module
from hpo.jobs.replay import Memory
from hpo.record.store import JobRow, ReportRow, Store, TrialRow
from hpo.strategies.hyperband import Plan, lay_out
from tests.support.broken_off import (
    GAP,
    PLANS,
    Mortal,
    Service,
    Spoiling,
    answer,
    ends_as,
    luck,
    undisturbed,
)
from tests.support.properties import examples
from tests.support.simulated import METRIC
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Report, Served


class Telling(Mortal):
    """Every second trial that diverges has reported that unit before: its own code looked at the loss too late."""

    def _serve(self, gang: str, assignment: Assignment, seconds: float) -> Served:
        served = super()._serve(gang, assignment, seconds)
        if not served.diverged or luck(assignment, 0) < 0.5:
            return served
        step = assignment.start + len(served.reports) + 1
        told = Report(step=step, metrics={METRIC: luck(assignment, step)})
        return replace(served, reports=(*served.reports, told))


@settings(max_examples=examples(120), deadline=None)
@given(
    st.sampled_from(PLANS),
    st.integers(1, 6),
    st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_cut_off_after_any_event_it_ends_alike(plan: Plan, parallel: int, deaths: list[int]) -> None:
    service = Service(plan=plan, parallel=parallel)
    for dies_at in deaths:
        if service.drive(dies_at=dies_at) is not None:
            break
    controller = ends_as(service, undisturbed(plan, parallel))
    assert controller.seconds == pytest.approx(service.now - GAP * (len(service.rows.job_row.summary["runs"]) - 1))


@settings(max_examples=examples(120), deadline=None)
@given(st.sampled_from(PLANS), st.integers(1, 6), st.lists(st.integers(1, 60), min_size=1, max_size=4), st.booleans())
def test_stopped_at_any_event_it_goes_on_to_the_same_end(
    plan: Plan, parallel: int, stops: list[int], exact: bool
) -> None:
    service = Service(plan=plan, parallel=parallel, options={"exact_from": lambda hyperparameters: exact})
    for stop_at in stops:
        service.drive(stop_at=stop_at)
        assert not any(row.status in ("Running", "Paused", "Pending") for row in service.rows.trials.values())
    ends_as(service, undisturbed(plan, parallel))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(PLANS),
    st.integers(1, 6),
    st.integers(0, 1000),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=4),
    st.booleans(),
)
def test_trials_whose_checkpoints_are_spoilt_start_over_and_end_alike(
    plan: Plan, parallel: int, seed: int, ends: list[tuple[bool, int]], exact: bool
) -> None:
    gangs = type("SpoilingOnce", (Spoiling,), {"spoilt": set(), "seed": seed})
    service = Service(plan=plan, parallel=parallel, gangs=gangs, options={"exact_from": lambda hyperparameters: exact})
    for killed, after in ends:
        service.drive(dies_at=after) if killed else service.drive(stop_at=after)
    ends_as(service, undisturbed(plan, parallel))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(PLANS),
    st.integers(1, 6),
    st.integers(0, 1000),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60), st.none() | st.integers(0, 20)), min_size=1, max_size=4),
    st.booleans(),
)
@example(PLANS[2], 3, 227, [(False, 8, None)], False)
def test_trials_that_were_halted_resumed_and_lost_fail_where_they_would_have(
    plan: Plan, parallel: int, seed: int, ends: list[tuple[bool, int, int | None]], exact: bool
) -> None:
    def brittle(assignment: Assignment, step: int) -> float:
        dice = random.Random(f"{seed}/{assignment.trial_id}")
        if step == dice.randint(1, 2 * plan.max_resource):
            if dice.random() < 0.3:
                return math.nan
            raise ValueError("a trial's own error")
        return luck(assignment, step)

    whole = Service(plan=plan, parallel=parallel, curve=brittle)
    expected = answer(whole, whole.drive())
    service = Service(
        plan=plan, parallel=parallel, curve=brittle, options={"exact_from": lambda hyperparameters: exact}
    )
    for number, (killed, after, lost) in enumerate(ends):
        losses = frozenset() if lost is None or number > 1 else frozenset({lost})  # A trial may lose two gangs.
        ended = service.drive(losses=losses, **{"dies_at" if killed else "stop_at": after})
        if ended is not None and not ended.stopped:
            break
    ends_as(service, expected)


@pytest.mark.parametrize("parallel", [1, 4])
@pytest.mark.parametrize("rung", [0, 1])
def test_a_trial_that_diverges_right_behind_a_rung_was_a_candidate_there(parallel: int, rung: int) -> None:
    """Told again, it reaches its rung first, and another is not promoted in its place."""
    plan = lay_out(30, 1, 30)
    healthy = Service(plan=plan, parallel=1, curve=luck)
    cuts = answer(healthy, healthy.drive())["cuts"]
    at = plan.brackets[0].rungs[rung]
    best, last = cuts[0, at][0][0], cuts[0, at][0][-1]

    def breaks(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == best and step == at + 1:
            raise DivergedError("the loss is not finite")
        return luck(assignment, step)

    whole = Service(plan=plan, parallel=parallel, curve=breaks)
    expected = answer(whole, whole.drive())
    assert expected["trials"][best][1:3] == ("Diverged", at)
    assert {best, last} <= set(expected["cuts"][0, at][0])
    for stop_at in range(10, 46, 3):
        service = Service(plan=plan, parallel=parallel, curve=breaks)
        service.drive(stop_at=stop_at)
        ends_as(service, expected)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(PLANS),
    st.integers(1, 4),
    st.integers(0, 1000),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=4),
    st.booleans(),
)
def test_trials_diverge_where_they_would_have_wherever_the_search_breaks_off(
    plan: Plan, parallel: int, seed: int, ends: list[tuple[bool, int]], exact: bool
) -> None:
    """At any unit, before or behind their report of it: they are candidates at the same rungs."""

    def breaks(assignment: Assignment, step: int) -> float:
        if step == random.Random(f"{seed}/{assignment.trial_id}").randint(1, 20):
            raise DivergedError("the loss is not finite")
        return luck(assignment, step)

    options = {"exact_from": lambda hyperparameters: exact}
    whole, service = (
        Service(plan=plan, parallel=of, curve=breaks, gangs=Telling, options=options) for of in (1, parallel)
    )
    expected = answer(whole, whole.drive())
    for killed, after in ends:
        ended = service.drive(**{"dies_at" if killed else "stop_at": after})
        if ended is not None and not ended.stopped:
            break
    ends_as(service, expected)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(PLANS), st.lists(st.integers(0, 60), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_trials_whose_checkpoints_are_gone_train_again_to_the_same_end(
    plan: Plan, deaths: list[int], chance: random.Random
) -> None:
    expected = dict(undisturbed(plan, 3))
    service = Service(plan=plan, parallel=3)
    for dies_at in deaths:
        service.drive(dies_at=dies_at)
        service.disk -= {uri for uri in sorted(service.disk) if chance.random() < 0.4}
    assert answer(service, service.drive()) == expected


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("raised", [DivergedError, ValueError])
def test_a_trial_that_fails_while_it_trains_its_rungs_again_fails_behind_the_last_of_them(
    raised: type[Exception], at: int, again: bool
) -> None:
    """Its checkpoint was gone: what was decided at its rungs stays, also where its driver dies then, once or twice."""
    plan = lay_out(30, 1, 30)
    healthy = Service(plan=plan, parallel=1, curve=luck)
    cuts = answer(healthy, healthy.drive())["cuts"]
    best = cuts[0, 3][0][0]

    def breaks(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == best and step == (at if second else 4):
            raise raised("broken")
        return luck(assignment, step)

    second = False
    whole = Service(plan=plan, parallel=1, curve=breaks)
    expected = answer(whole, whole.drive())
    assert expected["trials"][best][2] == 3
    service = Service(plan=plan, parallel=1, curve=luck)
    after = 1
    while (best not in service.rows.trials) or service.rows.trials[best].resource < 3:
        service, after = Service(plan=plan, parallel=1, curve=luck), after + 1
        service.drive(dies_at=after)
    service.disk = {uri for uri in service.disk if best not in uri}
    second, service.curve = True, breaks
    for dies_at in range(1, 5) if again else []:
        service.drive(dies_at=dies_at)
        assert service.rows.trials[best].resource == 3
        assert not service.rows.trials[best].checkpoint
    assert answer(service, service.drive()) == expected


def test_rows_are_read_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of 10,000 trials has half a million: what is kept of them is less than they are."""
    alive: list[int] = []

    def rows() -> int:
        return sum(type(found) is ReportRow for found in gc.get_objects())

    def counting(*, step: int, metrics: dict[str, float]) -> Report:
        if step % 400 == 0:
            alive.append(rows())
        return Report(step=step, metrics=metrics)

    monkeypatch.setattr(memory_module, "Report", counting)
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        store.create_job(JobRow(name="job", created_at=0.0))
        with store.writer("job") as writer:
            writer.trial(TrialRow(job="job", trial_id="job-000", number=0, resource=1200))
            for step in range(1, 1201):
                writer.report(ReportRow(job="job", trial_id="job-000", step=step, metrics={METRIC: 0.5}, at=1.0))
        others = rows()
        memory = Memory.of(store, store.job("job"), heard=2.0)
    assert memory.reported("job-000") == 1200
    assert len(alive) == 3
    assert max(alive) - others <= 2
