"""Jobs that announce their end and their budget: by themselves, or by who ends them where their driver was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from hpo.jobs.launch.background import end_abandoned
from hpo.notices import announcer
from hpo.record.store import Store
from tests.support.processes import ROOT
from tests.support.receivers import Hook
from tests.support.refusals import mentions


def lines(record: str, name: str = "job") -> list[str]:
    with Store(record) as store:
        return [line.text for line in store.lines(name) if "webhook, 127.0.0.1" in line.text]


def driver(record: str, hook: str, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.noticed", record, hook, how],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.fault
def test_a_killed_drivers_job_is_announced_by_who_ends_it(receiver: Hook, database: str) -> None:
    killed = driver(database, receiver.url, "killed")
    said, _ = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, said
    assert not receiver.posted
    with Store(database) as store:
        assert end_abandoned(store, "job")
    [posted] = receiver.wait_for(1)
    assert (posted.content["event"], posted.content["status"]) == ("stopped", "Stopped")
    mentions(posted.content["reason"], "driver")


@pytest.mark.fault
def test_a_driver_that_is_killed_as_it_announces_is_made_up_for_with_the_same_id(receiver: Hook, database: str) -> None:
    killed = driver(database, receiver.url, "trains")
    receiver.before = lambda number: killed.kill() if number == 1 else None
    said, _ = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, said
    with Store(database) as store:
        assert store.job("job").status == "Completed"
        assert not lines(database)
        assert not end_abandoned(store, "job")
    first, second = receiver.wait_for(2)
    assert first.content == second.content
    deadline = time.monotonic() + announcer.DEADLINE
    while not lines(database):
        assert time.monotonic() < deadline, "no line says that the notice was sent"
        time.sleep(0.05)
