"""A search that broke off anywhere, however often, and was taken up again ends as one that never did."""

from __future__ import annotations

import gc
import math
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from hpo.cost.limits import Limits
from hpo.cost.prices import Tariff
from hpo.jobs import replay as memory_module
from hpo.jobs.replay import Memory
from hpo.record.store import JobRow, ReportRow, Store, TrialRow
from hpo.search.controller import Controller
from hpo.search.observer import STOP_REQUESTED
from hpo.search.trial import UNTUNED
from hpo.strategies.completion_criteria import FIRST_FAILURES, TuningJobCompletionCriteriaConfig
from hpo.strategies.hyperband import Bracket, HyperbandStrategy, Plan, lay_out, run_all
from hpo.strategies.median_rule import with_median_rule
from hpo.strategies.random_strategy import RandomStrategy
from hpo.strategies.strategy import Strategy
from tests.support.broken_off import GAP, Mortal, Service, Spoiling, answer, check_bills, ends_as, luck
from tests.support.simulated import METRIC, WORKERS
from trainers import patient_storage
from trainers.checkpoint import Manifest
from trainers.errors import DivergedError, StorageError
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


PLANS = [lay_out(30, 1, 30), lay_out(9, 1, 9), run_all(7, 12), with_median_rule(run_all(12, 18))]


@cache
def undisturbed(plan: Plan, parallel: int) -> dict[str, Any]:
    """The answer of a search that nothing breaks off; many examples are compared with the same one."""
    service = Service(plan=plan, parallel=parallel)
    return answer(service, service.drive())


@settings(max_examples=120, deadline=None)
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


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(PLANS), st.integers(1, 6), st.lists(st.integers(1, 60), min_size=1, max_size=4), st.booleans())
def test_stopped_at_any_event_it_goes_on_to_the_same_end(
    plan: Plan, parallel: int, stops: list[int], exact: bool
) -> None:
    service = Service(plan=plan, parallel=parallel, options={"exact_from": lambda hyperparameters: exact})
    for stop_at in stops:
        service.drive(stop_at=stop_at)
        assert not any(row.status in ("Running", "Paused", "Pending") for row in service.rows.trials.values())
    ends_as(service, undisturbed(plan, parallel))


@settings(max_examples=150, deadline=None)
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


def test_a_job_that_stops_while_trials_start_over_says_of_them_what_its_record_says() -> None:
    """That they stand at the rungs that they had reached, not where they are on their way back to them."""
    plan = Plan(brackets=(Bracket(rungs=(2, 4, 9), sizes=(4, 3, 2)),), max_resource=9)
    for stop_at in range(1, 25):
        gangs = type("SpoilingOnce", (Spoiling,), {"spoilt": set(), "seed": 3})
        service = Service(plan=plan, parallel=1, gangs=gangs, curve=luck)
        controller = service.drive(stop_at=stop_at)
        assert controller is not None
        for run in controller.runs.values():
            row = service.rows.trials[run.id]
            assert (run.resource, run.value if run.resource else None) == (row.resource, row.objective)
    assert gangs.spoilt


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


def test_a_job_whose_first_trials_all_failed_is_tried_again_though_others_trained_beside_them() -> None:
    """What kept them from training may be mended; what the others came to is known, but for their models."""
    plan, healthy = PLANS[0], False

    def breaks(assignment: Assignment, step: int) -> float:
        if not healthy and assignment.trial_id in {f"job-00{number}" for number in range(FIRST_FAILURES)}:
            raise ValueError("no such file")
        return luck(assignment, step)

    service = Service(plan=plan, parallel=10, curve=breaks)
    failed = service.drive()
    assert failed is not None
    assert failed.trials.hopeless
    beside = [row for row in service.rows.trials.values() if row.number >= FIRST_FAILURES]
    assert any(row.resource for row in beside)
    assert {(row.status, row.objective) for row in beside} == {("Stopped", None)}
    service.disk.clear()
    healthy = True
    whole = Service(plan=plan, curve=luck)
    assert answer(service, service.drive()) == answer(whole, whole.drive())


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


@pytest.mark.parametrize(("raised", "status"), [(DivergedError, "Diverged"), (ValueError, "Failed")])
def test_how_a_trial_ended_stays_on_record_until_its_rung_is_cut_again(raised: type[Exception], status: str) -> None:
    """Another one's checkpoint is gone, and the driver dies while that one trains its rungs again."""
    plan = lay_out(30, 1, 30)
    healthy = Service(plan=plan, parallel=1, curve=luck)
    went_on, stopped = answer(healthy, healthy.drive())["cuts"][0, 1]

    def breaks(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == went_on[0] and step == 2:
            raise raised("broken")
        return luck(assignment, step)

    whole = Service(plan=plan, parallel=1, curve=breaks)
    expected = answer(whole, whole.drive())
    service = Service(plan=plan, parallel=1, curve=breaks)
    service.drive(dies_at=20)
    ended = service.rows.trials[went_on[0]]
    assert (ended.status, ended.resource) == (status, 1)
    again = service.rows.trials[stopped[0]]
    service.rows.trials[again.trial_id] = replace(again, status="Running", resource=0, checkpoint="", ended_at=None)
    service.drive(dies_at=1)
    assert service.rows.trials[went_on[0]] == ended
    assert answer(service, service.drive()) == expected


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


CRITERIA = [
    TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.93),
    TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.99),
    TuningJobCompletionCriteriaConfig(max_number_of_training_jobs_not_improving=3),
    TuningJobCompletionCriteriaConfig(4, target_objective_metric_value=0.985),
]


def counted(service: Service, controller: Controller | None) -> dict[str, Any]:
    """What a job that was complete early comes to: trials behind the one at which it was have no value."""
    assert controller is not None
    best = controller.best()
    rows = [row for row in service.rows.trials.values() if row.number >= 0 and row.objective is not None]
    values, resources = ({row.number: getattr(row, name) for row in rows} for name in ("objective", "resource"))
    return {"reason": controller.completed, "best": best and best.id, "values": values, "resources": resources}


@cache
def complete(plan: Plan, criterion: int) -> dict[str, Any]:
    """What it comes to where one gang serves it and nothing breaks it off."""
    alone = Service(plan=plan, parallel=1, options={"completion": CRITERIA[criterion]})
    return counted(alone, alone.drive())


@settings(max_examples=150, deadline=None)
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


@pytest.mark.parametrize("dies_at", [14, 18, 21])
def test_a_trial_that_trains_its_rungs_again_and_does_not_count_has_no_value(dies_at: int) -> None:
    """The job is complete at the second bracket, while trials of the third, whose checkpoints are gone, start over."""
    plan = Plan(brackets=(Bracket(rungs=(10, 12, 13), sizes=(4, 2, 1)),) * 3, max_resource=13)

    def falling(assignment: Assignment, step: int) -> float:
        number = assignment.trial_id.rpartition("-")[2]
        return step * 1e-4 - (int(number) if number.isdigit() else 0.0)

    alone, service = (
        Service(plan=plan, parallel=parallel, curve=falling, options={"completion": CRITERIA[2]}) for parallel in (1, 8)
    )
    expected = counted(alone, alone.drive())
    service.drive(dies_at=dies_at)
    behind = [row for row in service.rows.trials.values() if row.number > 7]
    assert [row.trial_id for row in behind if row.resource >= 10]
    service.disk -= {row.checkpoint for row in behind}
    assert counted(service, service.drive()) == expected


def test_a_stop_ends_the_wait_for_checkpoints_that_are_recalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_storage, "GIVE_UP_SECONDS", 3.0)
    service = Service(plan=PLANS[1])
    whole = Service(plan=PLANS[1])
    service.drive(stop_at=20)

    def away(uri: str, manifest: Manifest) -> bool:
        service.rows.stop_requested = True
        raise StorageError("the disk is not mounted")

    service.sound = away
    controller = service.drive()
    assert controller is not None
    assert controller.stopped == STOP_REQUESTED
    service.sound, service.rows.stop_requested = None, False
    assert answer(service, service.drive()) == answer(whole, whole.drive())


def test_a_storage_that_is_away_for_a_moment_while_a_job_is_recalled_fails_no_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patient_storage, "GIVE_UP_SECONDS", 0.0)
    service, whole = (Service(plan=PLANS[1]) for _ in range(2))
    expected = answer(whole, whole.drive())
    service.drive(stop_at=20)
    away = ["the disk is not mounted"]

    def sound(uri: str, manifest: Manifest) -> bool:
        if away:
            raise StorageError(away.pop())
        return uri in service.disk

    service.sound = sound
    stopped = service.drive()
    assert stopped is not None
    assert stopped.stopped == "the disk is not mounted (tried for 0 minutes)"
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


# ---- limits that are raised


PLANNED = [HyperbandStrategy(max_resource=9, min_resource=1), RandomStrategy()]


@settings(max_examples=150, deadline=None)
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


def test_a_model_that_was_kept_of_a_trial_that_diverged_stays_in_the_record() -> None:
    """As `num_to_keep=None` keeps it: in its first rung, or behind one."""

    def lost(assignment: Assignment, step: int) -> float:
        at = {"job-000": 1, "job-001": 3, "job-002": 7}.get(assignment.trial_id, 100)
        return math.nan if step >= at else luck(assignment, step)

    strategy = HyperbandStrategy(max_resource=9, min_resource=1, reduction_factor=2)
    service = Service(plan=Plan(brackets=(Bracket(rungs=(2, 5, 9), sizes=(4, 3, 3)),), max_resource=9), curve=lost)
    service.drive()
    before = {name: row for name, row in service.rows.trials.items() if row.status == "Diverged"}
    assert {name: bool(row.checkpoint) for name, row in before.items()} == dict.fromkeys(before, True)
    assert {"job-000", "job-001"} <= {*before}
    service.plan = strategy.grown(service.plan, 6)
    service.drive()
    for name, row in before.items():
        again = service.rows.trials[name]
        assert (again.checkpoint, again.files, again.resource) == (row.checkpoint, row.files, row.resource)


CHEAP = Tariff(per_worker_hour=3600.0, currency="EUR")
"""A worker-second costs 1."""


@settings(max_examples=100, deadline=None)
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
        assert "reached" in stopped.stopped
    service.options["limits"] = Limits(max_seconds=1e6, max_cost=1e6, tariff=CHEAP)
    ends_as(service, undisturbed(plan, 1))
