"""A search that broke off anywhere, however often, and was taken up again ends as one that never did."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import pytest
from ray.tune.experiment import Trial

from hpo.jobs.recorder import JobRecord
from hpo.jobs.replay import Memory
from hpo.record.tables import TrialRow
from hpo.search.observer import STOP_REQUESTED
from hpo.search.trial import new_run
from hpo.strategies.hyperband import Bracket, Plan, lay_out
from tests.support.broken_off import (
    PLANS,
    Rows,
    Service,
    Spoiling,
    answer,
    luck,
)
from tests.support.refusals import mentions
from tests.support.simulated import METRIC, search_of
from trainers import patient_storage
from trainers.checkpoint import Manifest
from trainers.errors import DivergedError, StorageError
from trainers.gangs.messages import Assignment


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
    mentions(stopped.stopped, "the disk is not mounted", "0")
    assert answer(service, service.drive()) == expected


@pytest.mark.parametrize("stop_at", [12, 40])
def test_a_resumed_job_writes_no_row_that_stands_in_the_record(stop_at: int) -> None:
    plan = lay_out(30, 1, 30)
    whole = Service(plan=plan, parallel=3)
    expected = answer(whole, whole.drive())
    service = Service(plan=plan, parallel=3)
    service.drive(stop_at=stop_at)
    stood, rows = dict(service.rows.trials), FirstWrites(trials=service.rows.trials, reports=service.rows.reports)
    rows.job_row, rows.bills, service.rows = service.rows.job_row, service.rows.bills, rows
    assert answer(service, service.drive()) == expected
    assert rows.first
    assert not [name for name, row in rows.first.items() if row == stood.get(name)]
    ended = [name for name, row in stood.items() if row.status == "Completed"]
    assert ended or stop_at == 12
    assert not set(ended) & set(rows.first)


class FirstWrites(Rows):
    """Keeps the first row that is written of each trial."""

    @cached_property
    def first(self) -> dict[str, TrialRow]:
        return {}

    def trial(self, row: TrialRow) -> None:
        self.first.setdefault(row.trial_id, row)
        super().trial(row)


def test_a_row_that_is_again_as_it_was_is_written() -> None:
    """The record has another row by then."""
    run = new_run(search_of(PLANS[0], parallel=1), 0, "job-000", {"x": 0.5})
    earlier = Rows()
    JobRecord(earlier, METRIC).trial(run)  # type: ignore[arg-type]
    rows = Rows()
    record = JobRecord(rows, METRIC, memory=Memory(earlier.trials.values()))  # type: ignore[arg-type]
    record.trial(run)
    assert not rows.trials
    for status, written in ((Trial.RUNNING, "Running"), (Trial.PENDING, "Pending")):
        run.trial.set_status(status)
        record.trial(run)
        assert rows.trials["job-000"].status == written
