"""The lease: one process drives a job, another takes over what a dead one left, and the first then writes nothing."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from hpo.record import writer as store_writer
from hpo.record.job_view import status_and_reason
from hpo.record.lease import is_dead, is_held, this_process
from hpo.record.tables import HEARD_BEFORE, LOST_AFTER
from hpo.sagemaker.description import describe
from tests.support.hpo.record.store_lease import (
    SPEC,
    ahead,  # noqa: F401  # A fixture.
)
from tests.support.refusals import mentions, refuses
from tests.support.rows import bill, job, report, silence, trial_with
from trainers import steady
from trainers.errors import LeaseError


def test_a_second_driver_is_refused_until_the_first_is_done(store):
    with store.writer("bank"):
        with refuses(
            LeaseError, field=("bank", socket.gethostname()), value=os.getpid(), remedy=("hpo stop bank", "60 s")
        ) as raised:
            store.writer("bank")
        assert re.search(r"\b\d s\b", str(raised.value)), "when it was heard of"
        assert is_held(store.job("bank"))
    assert not is_held(store.job("bank"))
    with store.writer("bank") as writer:
        writer.report(report(1))
    assert len(store.reports("bank")) == 1


def test_the_record_says_where_the_driver_runs_and_ran(store):
    made = store.job("bank").heard
    with store.writer("bank", {"log": "/tmp/log", "submission_id": "raysubmit_1"}):
        driver = store.job("bank").driver
    ahead = driver["ahead"]
    told = {"log": "/tmp/log", "submission_id": "raysubmit_1", HEARD_BEFORE: made}
    assert driver == {**this_process(), "ahead": ahead, **told}
    assert abs(ahead) < 5.0, "seconds between two clocks of one machine"
    assert (store.job("bank").driver, store.job("bank").lease) == (driver, "")
    with store.writer("bank"):
        assert store.job("bank").driver.keys() == {*this_process(), "ahead", HEARD_BEFORE}


def test_the_lease_outlives_a_database_that_is_away_for_half_a_minute(store, quiet):
    with store.writer("bank") as writer:
        silence(store, 50.0)
        with pytest.raises(LeaseError):
            store.writer("bank")
        writer.report(report(1))
    assert len(store.reports("bank")) == 1


def test_an_expired_lease_is_taken_over_and_the_first_driver_writes_nothing_more(store, quiet):
    first = store.writer("bank")
    first.report(report(1))
    first.flush()
    silence(store, LOST_AFTER + 1.0)
    with store.writer("bank") as second:
        second.report(report(2))
        second.flush()
        first.report(report(3))
        with refuses(LeaseError, field="bank", value=os.getpid(), remedy="60 s") as raised:
            first.flush()
        assert "hpo stop" not in str(raised.value), "it is this process that is to end"
        assert first.lost_lease
        for late in (lambda: first.job(status="Failed"), lambda: first.ledger(bill(1)), first.close):
            with refuses(LeaseError, field="bank", value=os.getpid(), remedy="60 s"):
                late()
        assert not first._thread.is_alive()
        second.report(report(4))
        second.job(status="Completed")
        assert not second.lost_lease
    assert [row.step for row in store.reports("bank")] == [1, 2, 4]
    assert store.job("bank").status == "Completed"
    assert store.ledger("bank") == []


@pytest.fixture
def stands_still(monkeypatch) -> Callable[[float], None]:
    """Lets the time go by in which this process did nothing, as one that is stopped and goes on."""
    passed = [0.0]

    class Clock:
        time = staticmethod(time.time)

        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + passed[0]

    def pass_by(seconds: float) -> None:
        passed[0] += seconds

    monkeypatch.setattr(store_writer, "time", Clock)
    return pass_by


@pytest.mark.parametrize(
    "call",
    [lambda writer: writer.trial(trial_with()), lambda writer: writer.at_once().__enter__()],
    ids=["row", "block"],
)
def test_a_driver_that_stood_still_learns_that_another_took_over_before_it_goes_on(
    store, quiet, monkeypatch, stands_still, call
):
    """Its thread may come to ask only after that, by when it has handed out work that is another's."""
    monkeypatch.setattr(store_writer, "LOOK_EVERY", 3600.0)
    first = store.writer("bank")
    first.flush()
    silence(store, LOST_AFTER + 1.0)
    with store.writer("bank"):
        stands_still(LOST_AFTER + 1.0)
        with refuses(LeaseError, field="bank", value=os.getpid(), remedy="60 s"):
            call(first)
    with suppress(LeaseError):
        first.close()
    assert store.trials("bank") == []


def test_a_driver_that_stood_still_beside_a_database_that_is_away_goes_on(store, quiet, monkeypatch, stands_still):
    monkeypatch.setattr(store_writer, "SURE_WITHIN", 0.05)
    with store.writer("bank") as writer:
        writer.flush()
        with monkeypatch.context() as away:
            away.setattr(writer, "_exchange", fails)
            stands_still(LOST_AFTER + 1.0)
            writer.report(report(1))
    assert [row.step for row in store.reports("bank")] == [1]


def fails(batch: object) -> None:
    raise OSError("the database is away")


def test_a_silent_driver_that_nobody_replaced_goes_on(store, quiet):
    with store.writer("bank") as writer:
        silence(store, 10 * LOST_AFTER)
        writer.report(report(1))
        writer.flush()
        assert is_held(store.job("bank"))


def test_a_process_is_told_from_another_of_its_number_and_from_one_of_another_machine():
    here = this_process()
    assert not is_dead(here)
    assert is_dead({**here, "started": here["started"] - 1.0})
    assert not is_dead({**here, "started": here["started"] - 1.0, "machine": "another"})
    assert not is_dead({})


def test_a_job_whose_driver_is_gone_has_failed_for_whoever_looks(store, ahead):
    store.create_job(job("gone", lease="theirs", driver={"host": "node-7", "pid": 41}))
    silence(store, LOST_AFTER + 5.0)
    ahead()
    row = store.job("gone")
    assert not is_held(row)
    status, reason = status_and_reason(row)
    assert status == "Failed"
    found = re.search(r"\b(\d+) s\b", mentions(reason, "hpo resume gone"))
    assert found, reason
    assert LOST_AFTER + 5.0 <= float(found[1]) < LOST_AFTER + 95.0


def test_a_job_whose_driver_has_another_clock_runs_for_whoever_looks(store, ahead):
    """Its own times, from which a run's seconds come, are of its clock."""
    ahead()
    began = time.monotonic()
    store.create_job(job("other", created_at=time.time(), spec=SPEC))
    with steady.measuring(), store.writer("other") as writer:
        writer.job(summary={"runs": [[time.time() - 7.0, None]]})
        writer.flush()
        heard, now = store.job("other").heard, time.time()
        described = describe(store.job("other"), [])
    passed = time.monotonic() - began + 1.0
    assert abs(now - heard) < passed
    assert described["HyperParameterTuningJobStatus"] == "InProgress"
    assert 7 <= described["ConsumedResources"]["RuntimeInSeconds"] < 7 + passed
