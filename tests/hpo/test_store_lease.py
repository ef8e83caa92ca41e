"""The lease: one process drives a job, another takes over what a dead one left, and the first then writes nothing."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from hpo import lease, store_writer
from hpo.lease import is_dead, is_held, this_process
from hpo.store import Store, TrialRow
from hpo.tables import JOBS, LOST_AFTER
from tests.support.at_once import GATE, LIGHT, ROOT, at_once
from tests.support.rows import bill, job, report, until
from trainers.errors import ConfigurationError, LeaseError


@pytest.fixture
def store(database) -> Iterator[Store]:
    with Store(database) as opened:
        opened.create_job(job())
        yield opened


def silence(store: Store, seconds: float) -> None:
    """As if the job's driver had not been heard of for so long."""
    with store._engine.begin() as connection:
        connection.execute(sa.update(JOBS).values(heartbeat=JOBS.c.heartbeat - seconds))


@pytest.fixture
def quiet(monkeypatch):
    """Writers whose heartbeats do not come in between."""
    monkeypatch.setattr(store_writer, "BEAT_EVERY", 3600.0)


# ---- whose


def test_a_second_driver_is_refused_until_the_first_is_done(store):
    with store.writer("bank"):
        with pytest.raises(
            LeaseError,
            match=rf"'bank' cannot be driven from here: process {os.getpid()} on {socket.gethostname()} .*"
            r"last heard of \d s ago; .*hpo stop bank.*60 s",
        ):
            store.writer("bank")
        assert is_held(store.job("bank"), time.time())
    assert not is_held(store.job("bank"), time.time())
    with store.writer("bank") as writer:
        writer.report(report(1))
    assert len(store.reports("bank")) == 1


def test_the_record_says_where_the_driver_runs_and_ran(store):
    with store.writer("bank", {"log": "/tmp/log", "submission_id": "raysubmit_1"}):
        driver = store.job("bank").driver
    assert driver == {**this_process(), "log": "/tmp/log", "submission_id": "raysubmit_1"}
    assert (store.job("bank").driver, store.job("bank").lease) == (driver, "")
    with store.writer("bank"):
        assert store.job("bank").driver == this_process()


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
        with pytest.raises(LeaseError, match=r"'bank' is not driven from here any more: process \d+ .*took it over"):
            first.flush()
        assert first.lost_lease
        for late in (lambda: first.job(status="Failed"), lambda: first.ledger(bill(1)), first.close):
            with pytest.raises(LeaseError, match="took it over"):
                late()
        assert not first._thread.is_alive()
        second.report(report(4))
        second.job(status="Completed")
        assert not second.lost_lease
    assert [row.step for row in store.reports("bank")] == [1, 2, 4]
    assert store.job("bank").status == "Completed"
    assert store.ledger("bank") == []


def test_an_idle_driver_learns_that_another_took_over(store, quiet, monkeypatch):
    monkeypatch.setattr(store_writer, "LOOK_EVERY", 0.05)
    with store.writer("bank") as first:
        silence(store, LOST_AFTER + 1.0)
        with store.writer("bank"):
            until(lambda: first.lost_lease)


def test_a_silent_driver_that_nobody_replaced_goes_on(store, quiet):
    with store.writer("bank") as writer:
        silence(store, 10 * LOST_AFTER)
        writer.report(report(1))
        writer.flush()
        assert is_held(store.job("bank"), time.time())


@pytest.mark.process
def test_of_many_that_want_a_free_job_one_gets_it(database):
    with Store(database) as store:
        store.create_job(job())
    with at_once(TAKE_IT, [[database]] * 3) as processes:
        # Each says what it got before any lets go.
        answers = [process.stdout.readline().strip() for process in processes]
        for process in processes:
            process.communicate("end\n", timeout=60)
    assert sorted(answers) == ["LeaseError"] * 2 + ["taken"]


OPEN_IT = f"""{LIGHT}
import os, signal
from hpo.store import ReportRow, Store
from trainers.errors import LeaseError
store = Store(sys.argv[1])
"""
TAKE_IT = f"""{OPEN_IT}{GATE}
try:
    writer = store.writer("bank")
    print("taken", flush=True)
except LeaseError as error:
    writer = None
    print("LeaseError", flush=True)
sys.stdin.readline()
if writer:
    writer.close()
"""
DIE = f"""{OPEN_IT}
writer = store.writer("bank")
writer.report(ReportRow(job="bank", trial_id="t0", step=1, metrics={{}}, at=1.0))
writer.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.process
@pytest.mark.fault
def test_a_driver_that_was_killed_on_this_machine_is_replaced_at_once(store, database):
    dead = subprocess.run([sys.executable, "-c", DIE, database], cwd=ROOT, timeout=60)
    assert dead.returncode == -9
    row = store.job("bank")
    assert row.lease
    assert not row.lost(time.time()), "it was heard of just now"
    assert is_dead(row.driver)
    assert not is_held(row, time.time())
    with store.writer("bank") as writer:
        writer.report(report(2))
    assert [row.step for row in store.reports("bank")] == [1, 2]


def test_a_process_is_told_from_another_of_its_number_and_from_one_of_another_machine():
    here = this_process()
    assert not is_dead(here)
    assert is_dead({**here, "started": here["started"] - 1.0})
    assert not is_dead({**here, "started": here["started"] - 1.0, "machine": "another"})
    assert not is_dead({})


@pytest.mark.process
def test_a_process_that_ended_and_is_not_yet_buried_is_dead():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        driver = {**this_process(), "pid": process.pid, "started": lease._started(process.pid)}
        assert not is_dead(driver)
        process.stdin.write(b"end\n")
        process.stdin.flush()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(driver)


# ---- what nobody else may do meanwhile


def test_a_job_that_is_driven_is_not_deleted_and_one_that_is_not_goes_whole(store):
    store.create_job(job("other"))
    for name in ("bank", "other"):
        with store.writer(name) as writer:
            writer.trial(TrialRow(job=name, trial_id="t0", number=0))
            writer.report(report(1, job=name))
            writer.ledger(bill(1, job=name))
            writer.flush()
            with pytest.raises(LeaseError, match=f"'{name}' cannot be deleted: process"):
                store.delete_job(name)
    store.delete_job("bank")
    assert [row.name for row in store.jobs()] == ["other"]
    assert len(store.trials("other")) == len(store.reports("other")) == len(store.ledger("other")) == 1
    store.create_job(job())
    assert store.trials("bank") == store.reports("bank") == store.ledger("bank") == []


def test_a_driver_whose_job_is_deleted_says_so(store, quiet):
    writer = store.writer("bank")
    silence(store, LOST_AFTER + 1.0)
    store.delete_job("bank")
    writer.report(report(1))
    with pytest.raises(LeaseError, match="it was deleted"):
        writer.close()
    with store._engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM reports")) == 0


def test_a_job_that_nobody_drives_may_be_changed(store):
    store.update_job("bank", status="Failed", reason="it could not be submitted", driver={"submission_id": "s"})
    row = store.job("bank")
    assert (row.status, row.reason, row.driver) == ("Failed", "it could not be submitted", {"submission_id": "s"})
    with store.writer("bank"), pytest.raises(LeaseError, match="'bank' cannot be changed"):
        store.update_job("bank", reason="late")
    with pytest.raises(ConfigurationError, match="no field 'heartbeat'"):
        store.update_job("bank", heartbeat=1.0)
    found = store.job("bank")
    assert found == dataclasses.replace(row, heartbeat=found.heartbeat, driver=this_process())
