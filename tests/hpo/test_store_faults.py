"""What the record survives: many drivers at once, a database that goes away, a disk that is full, drivers that die."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

import pytest
import sqlalchemy as sa

from hpo import database as database_module
from hpo.store import Store, TrialRow
from hpo.tables import JOBS, LOST_AFTER, REPORTS
from hpo.upkeep import check
from tests.support.at_once import ROOT
from tests.support.postgres import Postgres
from tests.support.rows import bill, job, report, until

pytestmark = [pytest.mark.fault, pytest.mark.system]

LIGHT = """
import itertools, os, sys, time, types
for package in ("hpo", "trainers"):
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [package]
from hpo.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
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


@pytest.fixture
def store(database) -> Iterator[Store]:
    with Store(database) as opened:
        opened.create_job(job())
        yield opened


@pytest.fixture
def away() -> Iterator[Postgres]:
    """A server that no other test needs."""
    with Postgres("fsync=off") as server:
        yield server


# ---- many at once

TEN_THOUSAND = """
with Store(url) as store:
    store.create_job(JobRow(name=name, created_at=1.0, heartbeat=1.0))
    with store.writer(name) as writer:
        for trial in range(100):
            writer.trial(TrialRow(job=name, trial_id=f"t{trial:02}", number=trial))
            for step in range(100):
                writer.report(report(step, f"t{trial:02}"))
            writer.ledger(
                LedgerRow(job=name, trial_id=f"t{trial:02}", gang="g", kind="training", worker_seconds=1.0, at=1.0)
            )
        writer.flush(500.0)
        writer.job(status="Completed")
"""


def test_eight_drivers_that_write_ten_thousand_reports_each_at_once_lose_none_and_write_none_twice(database):
    Store(database).close()
    names = [f"job-{number}" for number in range(8)]
    processes = [driver(TEN_THOUSAND, database, name) for name in names]
    for process in processes:
        say(process)
    for process in processes:
        process.communicate(timeout=500)
    assert [process.returncode for process in processes] == [0] * 8
    with Store(database) as store:
        for name in names:
            reports = store.reports(name)
            assert [(row.trial_id, row.step) for row in reports] == [
                (f"t{trial:02}", step) for trial in range(100) for step in range(100)
            ]
            assert all(row.objective == row.metrics["auc"] == row.step / 7 for row in reports)
            assert [row.worker_seconds for row in store.ledger(name)] == [1.0] * 100
            assert (store.job(name).status, store.job(name).lease) == ("Completed", "")
    assert check(database).rows == {"jobs": 8, "trials": 800, "reports": 80_000, "ledger": 800, "lines": 0}


# ---- a database that goes away

STEADILY = """
with Store(url) as store, store.writer(name) as writer:
    writer.trial(TrialRow(job=name, trial_id="t0", number=0))
    for step in itertools.count():
        writer.report(report(step))
        writer.ledger(LedgerRow(job=name, gang="g", kind="training", worker_seconds=1.0, at=time.time()))
        time.sleep(0.01)
        if os.path.exists(sys.argv[3]):
            break
    print(step + 1, flush=True)
"""


@pytest.mark.parametrize("how", ["stopped", "crashed", "frozen"])
def test_what_is_reported_while_the_server_is_away_waits_and_arrives_in_order(away, tmp_path, how):
    url, enough = away.new_database(), tmp_path / "enough"
    with Store(url) as store:
        store.create_job(job())
        process = driver(STEADILY.replace("sys.argv[3]", repr(str(enough))), url)
        say(process)
        until(lambda: len(store.reports("bank")) > 50, 60.0)
    gone = time.time()
    away.freeze() if how == "frozen" else away.stop(signal.SIGINT if how == "stopped" else signal.SIGQUIT)
    time.sleep(3.0)
    assert process.poll() is None
    back = time.time()
    away.thaw() if how == "frozen" else away.start()
    with Store(url) as store:
        until(lambda: any(row.at > back for row in contiguous(store)), 60.0)
        enough.touch()
        count = int(process.stdout.readline())
        assert process.wait(120) == 0
        rows = contiguous(store)
        assert len(rows) == count
        assert sum(gone < row.at < back for row in rows) > 10, "the driver went on meanwhile"
        assert [row.at for row in rows] == sorted(row.at for row in rows)
        assert [row.worker_seconds for row in store.ledger("bank")] == [1.0] * count


def contiguous(store: Store) -> list:
    """The reports that are there, which are the first ones, without a gap, whenever one looks."""
    rows = store.reports("bank")
    assert [row.step for row in rows] == list(range(len(rows)))
    return rows


TUNE = """
import sys, time
from ray.train import ScalingConfig
from hpo import Callback, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from tests.support.boosting import CHANNELS
from tests.support.boosting import RANGES, STATIC
from trainers import XGBoostTrainer
url, folder, seconds = sys.argv[1:]
class Slowly(Callback):
    def on_trial_report(self, trial, report):
        time.sleep(float(seconds))
tuner = HyperparameterTuner(
    XGBoostTrainer(scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}), hyperparameters=STATIC),
    "validation:auc", RANGES, strategy="Hyperband", max_jobs=30,
    strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=30, min_resource=1)),
    random_seed=1729, storage_path=folder, store=url, callbacks=[Slowly()],
)
tuner.fit(CHANNELS, job_name="bank")
"""


def test_a_tuning_job_goes_on_while_its_database_is_away_for_half_a_minute(away, tmp_path):
    """And its record is that of a job that nothing happened to."""
    url, calm = away.new_database(), f"sqlite:///{tmp_path}/calm.db"
    Store(url).close()
    with (tmp_path / "output").open("w") as output:
        command = [sys.executable, "-c", TUNE, url, str(tmp_path / "jobs"), "0.15"]
        tuning = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        with Store(url) as store:
            until(lambda: store.jobs() and len(store.reports("bank")) > 20, 120.0)
        away.stop(signal.SIGQUIT)
        gone = time.time()
        time.sleep(30.0)
        assert tuning.poll() is None, (tmp_path / "output").read_text()
        back = time.time()
        away.start()
        assert tuning.wait(240) == 0, (tmp_path / "output").read_text()
    command = [sys.executable, "-c", TUNE, calm, str(tmp_path / "calm"), "0"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=240)
    with Store(url) as found, Store(calm) as expected:
        job, other = found.job("bank"), expected.job("bank")
        assert (job.status, job.lease) == (other.status, other.lease) == ("Completed", "")
        assert sum(gone < row.at < back for row in found.reports("bank")) > 50, "it trained meanwhile"
        assert [decided(trial) for trial in found.trials("bank")] == [
            decided(trial) for trial in expected.trials("bank")
        ]
        assert [(row.trial_id, row.step, row.metrics) for row in found.reports("bank")] == [
            (row.trial_id, row.step, row.metrics) for row in expected.reports("bank")
        ]
        billed = sum(row.worker_seconds for row in found.ledger("bank"))
        assert billed == pytest.approx(sum(job.summary["worker_seconds"].values()), rel=1e-6)
        assert job.summary["best"]["value"] == other.summary["best"]["value"]
    assert check(url).problems == []


def decided(trial: TrialRow) -> tuple:
    return (trial.trial_id, trial.hyperparameters, trial.status, trial.resource, trial.objective, trial.bracket)


# ---- a disk that is full

FILL = """
import shutil
folder = os.path.dirname(url.removeprefix("sqlite:///"))
store = Store(url)
store.create_job(JobRow(name=name, created_at=1.0, heartbeat=1.0))
writer = store.writer(name)
writer.trial(TrialRow(job=name, trial_id="t0", number=0))
writer.flush()
with open(f"{folder}/filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError:
        pass
for step in range(5000):
    writer.report(report(step))
try:
    writer.flush(3.0)
except WarmbandError as error:
    print(error, flush=True)
print(len(store.reports(name)), flush=True)
if sys.argv[3] == "freed":
    os.unlink(f"{folder}/filler")
    writer.flush()
    for step in range(5000, 5100):
        writer.report(report(step))
    writer.close()
else:
    try:
        writer.close(1.0)
    except WarmbandError as error:
        print(error, flush=True)
    os.unlink(f"{folder}/filler")
steps = [row.step for row in store.reports(name)]
store.close()
print(steps == list(range(len(steps))), len(steps))
shutil.copy(url.removeprefix("sqlite:///"), sys.argv[4])
"""


@pytest.mark.parametrize("end", ["freed", "full"])
def test_on_a_full_disk_rows_wait_until_there_is_room_and_the_file_stays_whole(tmp_path, end):
    """On a file system of 2 MB, in a mount namespace of its own, which ends with the process."""
    (folder := tmp_path / "small").mkdir()
    mount = f'mount -t tmpfs -o size=2m tmpfs {folder} && exec {sys.executable} -c "$0" "$@"'
    script = ["unshare", "-m", "sh", "-c", mount, LIGHT + FILL, f"sqlite:///{folder}/store.db", "bank", end]
    done = subprocess.run([*script, str(tmp_path / "store.db")], cwd=ROOT, capture_output=True, text=True, timeout=200)
    if "denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("cannot mount a file system here")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "rows of job 'bank' still wait after 3 s" in lines[0]
    assert "database or disk is full" in lines[0]
    assert lines[1] == "0"
    if end == "freed":
        assert lines[2:] == ["True 5100"]
    else:
        assert "5000 rows of job 'bank' still wait after 1 s" in lines[2]
        assert lines[3:] == ["True 0"]
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
    for _ in range(3):
        process = driver(BATCHES, database)
        say(process)
        until(partial(more_than, store, count), 60.0)
        time.sleep(chance.uniform(0.0, 0.5))
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
    with store._engine.begin() as connection:
        connection.execute(sa.update(JOBS).values(heartbeat=JOBS.c.heartbeat - LOST_AFTER - 1.0))
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
            with pytest.raises(sa.exc.DBAPIError, match="idle-in-transaction"):
                standing_still.execute(sa.select(JOBS.c.name))
        assert (store.job("bank").owner, store.job("bank").reason) == ("another", "")
        with other._engine.connect() as connection:
            assert connection.scalar(sa.text("SHOW work_mem")) == "5MB", "what the URL says is kept"
