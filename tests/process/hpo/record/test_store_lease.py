"""The lease: one process drives a job, another takes over what a dead one left, and the first then writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hpo.record import lease
from hpo.record.lease import is_dead, is_held, this_process
from hpo.record.store import Store
from tests.support.at_once import GATE, LIGHT, ROOT, at_once
from tests.support.rows import job, report


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
from hpo.record.store import ReportRow, Store
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


@pytest.mark.fault
def test_a_driver_that_was_killed_on_this_machine_is_replaced_at_once(store, database):
    dead = subprocess.run([sys.executable, "-c", DIE, database], cwd=ROOT, timeout=60)
    assert dead.returncode == -9
    row = store.job("bank")
    assert row.lease
    assert not row.lost, "it was heard of just now"
    assert is_dead(row.driver)
    assert not is_held(row)
    with store.writer("bank") as writer:
        writer.report(report(2))
    assert [row.step for row in store.reports("bank")] == [1, 2]


def test_a_process_that_ended_and_is_not_yet_buried_is_dead():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        driver = {**this_process(), "pid": process.pid, "started": lease._started(process.pid)}
        assert not is_dead(driver)
        process.stdin.write(b"end\n")
        process.stdin.flush()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(driver)
