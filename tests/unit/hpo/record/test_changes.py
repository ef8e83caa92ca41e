"""A job is changed or deleted by one process at a time, and by none while another drives it."""

from __future__ import annotations

import dataclasses
import os
import threading

import pytest
import sqlalchemy as sa

from hpo.record.store import JobRow, Store, TrialRow
from hpo.record.tables import LOST_AFTER
from tests.support.refusals import refuses
from tests.support.rows import bill, job, report, silence
from trainers.errors import ConfigurationError, DataError, LeaseError


def test_a_job_that_is_driven_is_not_deleted_and_one_that_is_not_goes_whole(store):
    store.create_job(job("other"))
    for name in ("bank", "other"):
        with store.writer(name) as writer:
            writer.trial(TrialRow(job=name, trial_id="t0", number=0))
            writer.report(report(1, job=name))
            writer.ledger(bill(1, job=name))
            writer.flush()
            with refuses(LeaseError, field=name, value=os.getpid(), remedy=f"hpo stop {name}"):
                store.delete_job(name)
    store.delete_job("bank")
    assert [row.name for row in store.jobs()] == ["other"]
    assert len(store.trials("other")) == len(store.reports("other")) == len(store.ledger("other")) == 1
    store.create_job(job())
    assert store.trials("bank") == store.reports("bank") == store.ledger("bank") == []


def test_nobody_gets_a_job_while_its_files_are_removed_and_where_they_stay_it_stays(store):
    with store.writer("bank", {"log": "/tmp/log"}) as writer:
        writer.report(report(1))
    before = store.job("bank")

    def remove() -> None:
        with refuses(LeaseError, field="bank", value=os.getpid(), remedy="hpo stop bank"):
            store.writer("bank")
        raise DataError("a folder cannot be removed")

    with pytest.raises(DataError):
        store.delete_job("bank", remove)
    assert store.job("bank") == dataclasses.replace(before, heartbeat=store.job("bank").heartbeat)
    assert len(store.reports("bank")) == 1


def test_a_driver_whose_job_is_deleted_says_so(store, quiet):
    writer = store.writer("bank")
    silence(store, LOST_AFTER + 1.0)
    store.delete_job("bank")
    writer.report(report(1))
    with refuses(LeaseError, field="bank", value="deleted"):
        writer.close()
    with store._engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM reports")) == 0


def test_a_job_that_nobody_drives_may_be_changed(store):
    store.update_job("bank", status="Failed", reason="it could not be submitted", driver={"submission_id": "s"})
    row = store.job("bank")
    assert (row.status, row.reason, row.driver) == ("Failed", "it could not be submitted", {"submission_id": "s"})
    with store.writer("bank"), refuses(LeaseError, field="bank", value=os.getpid(), remedy="hpo stop bank"):
        store.update_job("bank", reason="late")
    with refuses(ConfigurationError, field="heartbeat", remedy=("status", "reason")):
        store.update_job("bank", heartbeat=1.0)
    found = store.job("bank")
    assert found == dataclasses.replace(row, heartbeat=found.heartbeat, driver=found.driver)


def test_of_two_that_change_a_job_at_once_the_second_goes_on_from_what_the_first_wrote(store, database):
    """It waits for the first, which has read the row and not written it yet."""
    done = []

    def second() -> None:
        other.update_job("bank", lambda row: {"spec": {**row.spec, "second": row.spec["first"]}})
        done.append("second")

    def first(row: JobRow) -> dict[str, object]:
        thread.start()
        assert asked.wait(60), "waited 60 s for the second to ask"
        done.append("first")
        return {"spec": {**row.spec, "first": 1}}

    with Store(database) as other:
        asked, thread = threading.Event(), threading.Thread(target=second)
        sa.event.listen(
            other._engine, "before_cursor_execute", lambda *said: asked.set() if "UPDATE" in said[2] else None
        )
        store.update_job("bank", first)
        thread.join(60)
    assert done == ["first", "second"]
    assert store.job("bank").spec == {**job().spec, "first": 1, "second": 1}


def test_a_change_that_is_refused_on_the_way_changes_nothing(store):
    before = store.job("bank")

    def refuse(row: JobRow) -> dict[str, object]:
        assert row.owner == before.owner, "as it was"
        raise LeaseError("another was first")

    with pytest.raises(LeaseError, match="another was first"):
        store.update_job("bank", refuse, owner="ada", reason="late")
    assert store.job("bank") == before
