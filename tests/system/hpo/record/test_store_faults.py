"""What the record survives: a database that goes away, a disk that is full, drivers that die."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from hpo import Callback
from hpo.jobs.launch import background, supervisor
from hpo.record import database as database_module, writer as store_writer
from hpo.record.maintenance import check
from hpo.record.store import JobWriter, Store, TrialRow
from hpo.record.tables import JOBS, LOST_AFTER, REPORTS
from tests.support.at_once import ROOT
from tests.support.boosting import CHANNELS, make
from tests.support.postgres import PASSWORD, Postgres
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.rows import bill, job, report, silence, trial_with, until
from trainers.errors import WarmbandError

pytestmark = pytest.mark.fault

LIGHT = """
import itertools, os, sys, time, types
for package in ("hpo", "trainers"):
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [package]
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
from trainers.errors import WarmbandError
url, name = sys.argv[1:3]
def report(step, trial="t0"):
    return ReportRow(job=name, trial_id=trial, step=step, objective=step / 7, metrics={"auc": step / 7}, at=time.time())
"""


def driver(script: str, url: str, name: str = "bank") -> subprocess.Popen[str]:
    """A process that runs a script once it is told to; `say` tells it."""
    process = subprocess.Popen(
        [sys.executable, "-c", LIGHT + "print('ready', flush=True)\nsys.stdin.readline()\n" + script, url, name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def say(process: subprocess.Popen[str]) -> None:
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.fixture(scope="module")
def away() -> Iterator[Postgres]:
    """A server that no other module needs, and that is up between two tests."""
    with Postgres("fsync=off") as server:
        yield server


# ---- a database that goes away


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer tries again twice a second for as long as its database is away."""
    monkeypatch.setattr(store_writer, "LONGEST_PAUSE", 0.5)


def leave(server: Postgres, how: str, url: str = "") -> None:
    if how == "frozen":
        server.freeze()
    elif how == "full":
        server.limit(url, 0)
    elif how == "killed":
        server.kill()
    else:
        server.stop(signal.SIGINT if how == "stopped" else signal.SIGQUIT)


def come_back(server: Postgres, how: str, url: str = "") -> None:
    if how == "frozen":
        server.thaw()
    elif how == "full":
        server.limit(url, -1)
    else:
        server.start()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", ["stopped", "crashed", "frozen"])
def test_what_is_reported_while_the_server_is_away_waits_and_arrives_in_order(away, how):
    steps = itertools.count()

    def go_on(writer: JobWriter, rows: int) -> None:
        for step in itertools.islice(steps, rows):
            writer.report(report(step))
            writer.ledger(bill(1.0))

    with Store(away.new_database()) as store:
        store.create_job(job())
        with store.writer("bank") as writer:
            writer.trial(trial_with())
            go_on(writer, 20)
            until(lambda: len(contiguous(store)) == 20, 60.0)
            leave(away, how)
            try:
                go_on(writer, 30)
                with refuses(WarmbandError, field="bank", value=60, remedy=("1 s", "database")):
                    writer.flush(1.0)
                go_on(writer, 30)
            finally:
                come_back(away, how)
            go_on(writer, 20)
            until(lambda: len(contiguous(store)) == 100, 60.0)
            writer.flush(60.0)
        assert [row.worker_seconds for row in store.ledger("bank")] == [1.0] * 100


def contiguous(store: Store) -> list:
    """The reports that are there, which are the first ones, without a gap, whenever one looks."""
    rows = store.reports("bank")
    assert [row.step for row in rows] == list(range(len(rows)))
    return rows


def test_half_a_minute_is_less_than_a_driver_waits_and_a_lease_lasts():
    longest = 30.0 + store_writer.LONGEST_PAUSE
    assert longest < min(LOST_AFTER, store_writer.CLOSE_WITHIN, store_writer.LONGEST_WAIT)


class Outage(Callback):
    """Takes a job's database away in the middle of it, until it is missed and 60 reports later."""

    def __init__(self, server: Postgres, how: str, url: str, missed: Callable[[], bool]) -> None:
        self.server, self.how, self.url, self.missed = server, how, url, missed
        self.reports = 0
        self.gone = self.back = 0.0

    def on_trial_report(self, trial: Any, report: Any) -> None:
        self.reports += 1
        if self.reports == 20:
            leave(self.server, self.how, self.url)
            self.gone = time.time()
        elif self.reports == 80:
            until(self.missed, 60.0)
            self.back = time.time()
            come_back(self.server, self.how, self.url)


@pytest.fixture(scope="module")
def calm(tmp_path_factory) -> Iterator[Store]:
    """The record of a job that nothing happened to."""
    folder = tmp_path_factory.mktemp("calm")
    url = f"sqlite:///{folder}/calm.db"
    make(workers=0, storage_path=str(folder), store=url).fit(CHANNELS, job_name="bank")
    with Store(url) as store:
        yield store


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", ["stopped", "crashed", "killed", "full"])
def test_a_tuning_job_goes_on_while_its_database_is_away(away, calm, tmp_path, caplog, how):
    """And its record is that of a job that nothing happened to."""
    url = away.of_another_user(away.new_database())

    def missed() -> bool:
        """Whether the job's writer has warned that its store is away."""
        said = (record.getMessage() for record in caplog.records if record.name == store_writer.__name__)
        return any(not missing_names(text, "bank", "store") for text in said)

    outage = Outage(away, how, url, missed)
    make(workers=0, storage_path=str(tmp_path / "jobs"), store=url, callbacks=[outage]).fit(CHANNELS, job_name="bank")
    with Store(url) as found:
        job, other = found.job("bank"), calm.job("bank")
        assert (job.status, job.lease) == (other.status, other.lease) == ("Completed", "")
        assert sum(outage.gone < row.at < outage.back for row in found.reports("bank")) > 50, "it trained meanwhile"
        assert [decided(trial) for trial in found.trials("bank")] == [decided(trial) for trial in calm.trials("bank")]
        assert [(row.trial_id, row.step, row.metrics) for row in found.reports("bank")] == [
            (row.trial_id, row.step, row.metrics) for row in calm.reports("bank")
        ]
        billed = sum(row.worker_seconds for row in found.ledger("bank"))
        assert billed == pytest.approx(sum(job.summary["worker_seconds"].values()), rel=1e-6)
        assert job.summary["best"]["value"] == other.summary["best"]["value"]
    assert check(url).problems == []


def decided(trial: TrialRow) -> tuple:
    return (trial.trial_id, trial.hyperparameters, trial.status, trial.resource, trial.objective, trial.bracket)


@pytest.mark.usefixtures("impatient")
def test_a_writer_goes_on_once_a_database_that_was_read_only_for_a_while_is_not(away):
    """A connection keeps the setting that it began with, and lives on, so it must not be tried again and again."""
    url = away.new_database()
    with Store(url) as store:
        store.create_job(job())
        with store.writer("bank") as writer:
            writer.report(report(0))
            writer.flush()
            away.read_only(url)
            writer.report(report(1))
            with refuses(WarmbandError, field="bank", value="2 s", remedy="read-only"):
                writer.flush(2.0)
            with refuses(WarmbandError, field="store", value="read-only", remedy="WARMBAND_STORE"):
                store.request_stop("bank")
            away.writable(url)
            assert store.request_stop("bank")
            writer.report(report(2))
            writer.flush(60.0)
        assert [row.step for row in contiguous(store)] == [0, 1, 2]


def test_a_job_in_the_background_begins_once_its_database_answers(away, home, tmp_path, monkeypatch):
    url, log = away.new_database(), supervisor.log_file("late")
    with monkeypatch.context() as prepared:
        prepared.setattr(background, "start", lambda *_, **__: "nowhere yet")
        tuner = make(workers=0, max_jobs=3, store=url)
        tuner.fit(CHANNELS, job_name="late", wait=False)
    away.stop(signal.SIGINT)
    try:
        supervisor.start("late", url)
        until(lambda: log.exists() and not missing_names(log.read_text(), "600 s", "store"))
    finally:
        away.start()
    tuner.wait()
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Completed"
    assert "supervisor:" not in log.read_text(), "its driver did not die"
    assert PASSWORD not in log.read_text()


# ---- a disk that is full

FILL = """
import shutil
database = url.removeprefix("sqlite:///")
filler = os.path.join(os.path.dirname(database), "filler")
store = Store(url)

def writer_on_a_full_disk(name):
    store.create_job(JobRow(name=name, created_at=1.0))
    writer = store.writer(name)
    writer.trial(TrialRow(job=name, trial_id="t0", number=0))
    writer.flush()
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    for step in range(5000):
        writer.report(ReportRow(job=name, trial_id="t0", step=step, objective=step / 7, metrics={}, at=1.0))
    try:
        writer.flush(1.0)
    except WarmbandError as error:
        print(error)
    print(len(store.reports(name)))
    return writer

writer = writer_on_a_full_disk("freed")
os.unlink(filler)
writer.flush()
for step in range(5000, 5100):
    writer.report(report(step, "t0"))
writer.close()

writer = writer_on_a_full_disk("full")
try:
    writer.close(1.0)
except WarmbandError as error:
    print(error)
os.unlink(filler)

for name in ("freed", "full"):
    steps = [row.step for row in store.reports(name)]
    print(name, steps == list(range(len(steps))), len(steps))
store.close()
shutil.copy(database, sys.argv[3])
"""


def test_on_a_full_disk_rows_wait_until_there_is_room_and_the_file_stays_whole(tmp_path):
    """On a file system of 4 MB, in a mount namespace of its own, which ends with the process."""
    (folder := tmp_path / "small").mkdir()
    mount = f'mount -t tmpfs -o size=4m tmpfs {folder} && exec {sys.executable} -c "$0" "$@"'
    script = ["unshare", "-m", "sh", "-c", mount, LIGHT + FILL, f"sqlite:///{folder}/store.db", "freed"]
    done = subprocess.run([*script, str(tmp_path / "store.db")], cwd=ROOT, capture_output=True, text=True, timeout=200)
    if "denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("cannot mount a file system here")
    assert done.returncode == 0, done.stderr
    waits, none, still_waits, still_none, given_up, freed, full = done.stdout.splitlines()
    mentions(waits, "'freed'", "1 s", "disk")
    mentions(still_waits, "'full'", "1 s", "disk")
    mentions(given_up, 5000, "'full'", "1 s", "disk")
    assert (none, still_none) == ("0", "0")
    assert freed == "freed True 5100"
    assert full == "full True 0"
    assert check(f"sqlite:///{tmp_path}/store.db").problems == []


# ---- drivers that die

BATCHES = """
with Store(url) as store, store.writer(name) as writer:
    first = sum(1 for _ in store.reports(name))
    for start in itertools.count(first, 500):
        writer.report(*(report(step) for step in range(start, start + 500)))
        time.sleep(0.05)
"""


def test_a_driver_killed_in_the_middle_of_a_batch_leaves_whole_ones_and_another_goes_on(store, database):
    with store.writer("bank") as writer:
        writer.trial(TrialRow(job="bank", trial_id="t0", number=0))
    chance, count = random.Random(7), 0
    for _ in range(2):
        process = driver(BATCHES, database)
        say(process)
        until(partial(more_than, store, count), 60.0)
        time.sleep(chance.uniform(0.0, 0.1))
        process.kill()
        process.wait(60)
        count = len(contiguous(store))
        assert count % 500 == 0, "half of what was reported at once"
        assert store.job("bank").lease
    with store.writer("bank") as writer:  # At once: the one before is known to be dead.
        writer.report(report(count))
    assert len(contiguous(store)) == count + 1
    assert check(database).problems == []


def more_than(store: Store, count: int) -> bool:
    with store._engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(REPORTS)) > count


FROZEN = """
import signal
with Store(url) as store:
    writer = store.writer(name)
    writer.report(report(0))
    writer.flush()
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        for step in range(1000, 2000):
            writer.report(report(step))
            time.sleep(0.005)
        writer.flush()
    except WarmbandError as error:
        print(type(error).__name__, writer.lost_lease, flush=True)
"""


def test_a_driver_that_stood_still_and_was_replaced_writes_nothing_when_it_wakes_up(store, database):
    """It stands still between two of its calls, with its lease expired; another drives the job to its end."""
    first = driver(FROZEN, database)
    say(first)
    until(lambda: stopped(first.pid), 60.0)
    silence(store, LOST_AFTER + 1.0)
    with store.writer("bank") as second:
        second.report(report(1))
        second.flush()
        os.kill(first.pid, signal.SIGCONT)
        assert first.communicate(timeout=60)[0] == "LeaseError True\n"
        second.report(report(2))
        second.ledger(bill(1))
        assert not second.lost_lease
    assert [row.step for row in store.reports("bank")] == [0, 1, 2]


def stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def test_a_driver_that_stands_still_in_the_middle_of_a_batch_holds_its_job_s_row_no_longer_than_it_may(
    away, monkeypatch
):
    """PostgreSQL keeps the row locked for it, until it ends its connection."""
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 4.0)
    url = away.new_database()
    with Store(url) as store, Store(f"{url}?options=-cwork_mem%3D5MB") as other:
        store.create_job(job())
        with store._engine.connect() as standing_still:
            standing_still.execute(sa.update(JOBS).values(reason="half a batch"))
            other.update_job("bank", owner="another")
            with refuses(sa.exc.DBAPIError, field="idle-in-transaction"):
                standing_still.execute(sa.select(JOBS.c.name))
        assert (store.job("bank").owner, store.job("bank").reason) == ("another", "")
        with other._engine.connect() as connection:
            assert connection.scalar(sa.text("SHOW work_mem")) == "5MB", "what the URL says is kept"
