"""A search that criteria or limits end, broken off and taken up again, ends as one that was planned so."""

from __future__ import annotations

import math

import pytest

from hpo.strategies.completion_criteria import FIRST_FAILURES
from hpo.strategies.hyperband import Bracket, HyperbandStrategy, Plan
from tests.support.broken_off import (
    PLANS,
    Service,
    answer,
    luck,
)
from tests.support.hpo.jobs.replay_and_limits import CRITERIA, counted
from trainers.gangs.messages import Assignment


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
