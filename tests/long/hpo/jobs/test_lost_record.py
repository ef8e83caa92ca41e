"""Real drivers in the background whose record is removed, or replaced by a backup, as the docs say it is put back."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpo import HyperparameterTuner
from hpo.jobs.launch.supervisor import log_file
from hpo.record.lease import is_dead, is_held
from hpo.record.store import Store
from tests.support.background import begin
from tests.support.refusals import mentions


def until(what: str, found: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}\n{log_file('background').read_text()}"
        time.sleep(0.2)


def trials() -> int:
    with Store() as store:
        return len(store.trials("background"))


@pytest.fixture
def record(home: Path) -> Iterator[Path]:
    """The file of a record whose job is at work in the background; the job is stopped behind the test."""
    begin()
    until("its first trials", lambda: trials() > 5)
    yield home / "warmband.db"
    with Store() as store:
        if any(job.name == "background" for job in store.jobs()):
            store.request_stop("background")
            until("its end", lambda: not is_held(store.job("background")))


def without_logs(record: Path) -> None:
    for ending in ("-wal", "-shm"):
        record.with_name(record.name + ending).unlink(missing_ok=True)


@pytest.mark.fault
def test_a_backup_is_put_back_under_a_driver_that_goes_on_from_it(record: Path) -> None:
    backup = record.with_name("backup.db")
    with sqlite3.connect(record) as connection:
        connection.execute("VACUUM INTO ?", [str(backup)])
    connection.close()
    before = trials()
    until("more trials", lambda: trials() > before + 3)
    with Store() as store:
        first = store.job("background").driver
    shutil.copyfile(backup, record)
    without_logs(record)
    until("the end of its driver", lambda: is_dead(first))
    (saved,) = record.parent.glob("warmband.db.saved-background-*")
    mentions(log_file("background").read_text(), str(record), str(saved))
    with Store(f"sqlite:///{saved}") as store:
        assert store.job("background").status == "Stopped"
        assert len(store.trials("background")) > before + 3
    until("another driver", lambda: is_held(job := Store().job("background")) and job.driver["pid"] != first["pid"])
    until("trials of the restored job", lambda: trials() > before + 3)


@pytest.mark.fault
def test_a_record_that_is_removed_is_saved_and_the_job_goes_on_from_there(record: Path) -> None:
    with Store() as store:
        first = store.job("background").driver
    before = trials()
    record.unlink()
    without_logs(record)
    until("the end of its driver", lambda: is_dead(first))
    (saved,) = record.parent.glob("warmband.db.saved-background-*")
    mentions(log_file("background").read_text(), str(record), str(saved), "hpo resume background")
    without_logs(record)
    saved.rename(record)
    with Store() as store:
        assert store.job("background").status == "Stopped"
    assert trials() >= before
    HyperparameterTuner.attach("background").resume(wait=False)
    until("more trials", lambda: trials() > before)
