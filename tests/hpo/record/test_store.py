"""The store: what goes in comes out, nothing is lost or written twice, and errors say what to do; on both databases."""

from __future__ import annotations

import json
import logging
import math
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, strategies as st

from hpo.record import batch, database as reached, writer as store_writer
from hpo.record.job_view import best_trial, objective
from hpo.record.maintenance import check
from hpo.record.store import JobWriter, Store, TrialRow
from hpo.record.tables import LOST_AFTER, LedgerKind, decode, encode
from hpo.record.totals import State
from hpo.record.writer import FLUSH_EVERY
from tests.support.at_once import GATE, LIGHT, ROOT, at_once
from tests.support.postgres import PASSWORD
from tests.support.rows import bill, job, report, silence, trial_with, until
from trainers.errors import ConfigurationError, WarmbandError

KINDS = get_args(LedgerKind)


@pytest.fixture
def local(tmp_path) -> Iterator[Store]:
    """A store in the file `store.db`, for what is SQLite's alone."""
    with Store(sqlite_url(tmp_path)) as opened:
        opened.create_job(job())
        yield opened


@pytest.fixture
def impatient(monkeypatch):
    """A locked database is an error at once, so that the writer's own retries are what is tested."""
    monkeypatch.setattr(reached, "BUSY_SECONDS", 0.02)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


def lose_answers(writer: JobWriter, times: int) -> list[int]:
    """Commits that succeed while the connection breaks before their answer."""
    exchange, lost = writer._exchange, []

    def exchange_and_fail(batch):
        exchange(batch)
        if len(lost) < times and batch.rows:
            lost.append(1)
            raise OSError("the connection broke")

    writer._exchange = exchange_and_fail
    return lost


# ---- round trips


def test_job_comes_back(store):
    spec = {
        "ranges": {"eta": [0.1, math.inf]},
        "workers": 3,
        "early_stopping": True,
        "note": None,
        "static": {"a": "1"},
    }
    row = job("other", created_at=2000.5, spec=spec, plan={"brackets": [{"rungs": [1, 3]}]}, reason="naïve ✓")
    store.create_job(row)
    found = store.job("other")
    assert found == replace(row, heartbeat=found.heartbeat)
    assert [each.name for each in store.jobs()] == ["other", "bank"]


def test_trial_comes_back_with_the_types_of_its_hyperparameters(store):
    values = {
        "depth": 3,
        "eta": 3.0,
        "tiny": 1e-300,
        "flag": True,
        "none": None,
        "text": "3",
        "big": 2**70,
        "nan": "NaN",
    }
    row = TrialRow(
        job="bank",
        trial_id="t0",
        number=0,
        status="Completed",
        hyperparameters=values,
        bracket=2,
        resource=30,
        objective=0.75,
        best_objective=0.8,
        best_resource=17,
        checkpoint="file:///c",
        checkpoint_bytes=5 * 2**30,
        failure_reason="",
        traceback="",
        attempts=2,
        started_at=1.25,
        ended_at=2.5,
    )
    bare = TrialRow(job="bank", trial_id="t1", number=1)
    with store.writer("bank") as writer:
        writer.trial(bare)
        writer.trial(row)
    assert store.trials("bank") == [row, bare]
    found = store.trials("bank")[0].hyperparameters
    assert list(found) == list(values)
    assert [type(value) for value in found.values()] == [type(value) for value in values.values()]


def test_numbers_of_numpy_come_back_as_python_s(store):
    with store.writer("bank") as writer:
        writer.report(report(np.int64(1), np.float32(0.5), metrics={"n": np.int32(2), "auc": np.float64(0.25)}))
        writer.trial(TrialRow(job="bank", trial_id="t0", number=0, hyperparameters={"a": np.arange(2), "b": (1, "x")}))
    assert store.reports("bank")[0].metrics == {"n": 2, "auc": 0.25}
    assert store.trials("bank")[0].hyperparameters == {"a": [0, 1], "b": [1, "x"]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null_as_objective_and_itself_as_metric(store, value):
    with store.writer("bank") as writer:
        writer.report(report(1, value))
        writer.trial(TrialRow(job="bank", trial_id="t0", number=0, objective=value))
    (row,) = store.reports("bank")
    assert row.objective is None
    assert repr(row.metrics) == repr({"auc": value})
    assert store.trials("bank")[0].objective is None


def test_text_that_no_database_takes_does_not_block_the_rows_behind_it(store):
    with store.writer("bank") as writer:
        writer.trial(
            TrialRow(job="bank", trial_id="t0", number=0, traceback="a\0b\udc80c", hyperparameters={"x": "\0"})
        )
        writer.report(report(1))
    assert store.trials("bank")[0].traceback == "a\ufffdb?c"
    assert len(store.reports("bank")) == 1


words = st.sampled_from(["NaN", "Infinity", "-Infinity", "\\NaN", "\\\\-Infinity", "\\"])
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | words
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts


@given(st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)))
def test_encode_and_decode_are_each_other_s_reverse_through_strict_json(value):
    assert repr(decode(json.loads(json.dumps(encode(value), allow_nan=False)))) == repr(value)


def test_rows_come_in_their_order(store):
    rows = [report(step, trial_id=trial) for trial in ("t1", "t0") for step in (10, 9, 1)]
    with store.writer("bank") as writer:
        writer.report(*rows)
        writer.ledger(*(bill(seconds) for seconds in range(20)))
        writer.ledger(bill(99, at=0.5, trial_id="t0", kind="starting"))
        for number, trial in enumerate(["z", "y"]):
            writer.trial(TrialRow(job="bank", trial_id=trial, number=number))
    assert [(row.trial_id, row.step) for row in store.reports("bank")] == [
        (t, s) for t in ("t0", "t1") for s in (1, 9, 10)
    ]
    assert [row.step for row in store.reports("bank", "t1")] == [1, 9, 10]
    assert [row.worker_seconds for row in store.ledger("bank")] == [99, *range(20)]
    assert [row.trial_id for row in store.trials("bank")] == ["z", "y"]


# ---- the writer


def test_a_repeated_step_replaces_the_first(store):
    with store.writer("bank") as writer:
        writer.report(report(1, 0.1), report(2, 0.2), report(2, 0.25))
        writer.flush()
        writer.report(report(2, 0.3), report(3, 0.4))
    assert [(row.step, row.objective) for row in store.reports("bank")] == [(1, 0.1), (2, 0.3), (3, 0.4)]


def test_only_the_last_state_of_a_trial_and_of_the_job_stays(store):
    with store.writer("bank") as writer:
        for resource in range(50):
            writer.trial(TrialRow(job="bank", trial_id="t0", number=0, status="Running", resource=resource))
            writer.job(summary={"resource": resource})
        writer.job(status="Completed", ended_at=5.0)
    assert [(row.status, row.resource) for row in store.trials("bank")] == [("Running", 49)]
    row = store.job("bank")
    assert (row.status, row.ended_at, row.summary) == ("Completed", 5.0, {"resource": 49})


def test_what_belongs_together_is_written_together(local):
    """A driver that dies in between leaves both or neither, and the next one bills no gang twice."""
    with local.writer("bank") as writer:
        with writer.at_once():
            writer.ledger(bill(2.0))
            time.sleep(3 * FLUSH_EVERY)
            assert not local.ledger("bank")
            writer.job(summary={"held": {}})
        writer.flush()
        assert (len(local.ledger("bank")), local.job("bank").summary) == (1, {"held": {}})


def test_what_is_queued_is_written_without_a_flush(store):
    with store.writer("bank") as writer:
        writer.report(report(1))
        until(lambda: len(store.reports("bank")) == 1)


@pytest.mark.parametrize("value", ["last", "best"])
@pytest.mark.parametrize("aim", ["Maximize", "Minimize"])
def test_sums_are_those_of_the_rows(store, value, aim):
    spec = {"objective_value": value, "objective_type": aim}
    store.create_job(job("one", spec=spec))
    store.create_job(job("none", spec=spec))
    trials = [trial_with(job="one", trial_id="untuned", number=-1, objective=9.0, best_objective=9.0, ended_at=1.0)]
    for number in range(40):
        trials.append(
            trial_with(
                job="one",
                trial_id=f"t{number}",
                number=number,
                status=("Completed", "Failed", "Diverged", "Running", "Stopped")[number % 5],
                objective=None if number % 3 == 0 else number / 7 % 1,
                best_objective=None if number % 7 == 0 else number / 11 % 1,
                ended_at=None if number % 5 == 3 else 5.0,
                replaces="t0" if number > 36 else "",
            )
        )
    bills = [bill(0.1 * n, job="one", trial_id=f"t{n % 3}" if n % 4 else "", kind=KINDS[n % 4]) for n in range(60)]
    with store.writer("one") as writer:
        for each in trials:
            writer.trial(each)
        writer.ledger(*bills)
    row, totals = store.job("one"), store.totals(store.jobs())
    best = best_trial(replace(row, spec=spec), trials[1:])
    assert totals["one"].best == objective(row, best) is not None
    assert (totals["one"].forks, totals["none"].forks) == (3, 0)
    assert totals["one"].ended == sum(each.ended_at is not None for each in trials[1:]) > 0
    values = {each.trial_id: objective(row, each) is not None for each in trials[1:]}
    states = Counter(
        State(status=each.status, ended=each.ended_at is not None, valued=values[each.trial_id]) for each in trials[1:]
    )
    assert totals["one"].trials == states
    by_trial, by_kind = Counter(), Counter()
    for each in bills:
        by_trial[each.trial_id, each.kind] += each.worker_seconds
        by_kind[each.kind] += each.worker_seconds
    assert store.billed("one") == pytest.approx(dict(by_trial))
    assert totals["one"].seconds == pytest.approx(dict(by_kind))
    assert (totals["none"].ended, totals["none"].best, totals["none"].worker_seconds) == (0, None, 0.0)
    assert store.billed("none") == {}
    with pytest.raises(ConfigurationError, match="no job named 'nobody'"):
        store.billed("nobody")


def test_an_idle_writer_is_heard_of(store, monkeypatch):
    monkeypatch.setattr(store_writer, "BEAT_EVERY", 0.05)
    silence(store, LOST_AFTER + 1.0)
    assert store.job("bank").lost
    with store.writer("bank"):
        until(lambda: not store.job("bank").lost)
        first = store.job("bank").heartbeat
        until(lambda: store.job("bank").heartbeat > first)


def test_a_job_is_lost_while_it_should_run_and_its_writer_is_silent():
    assert not job(silent=60.0).lost
    assert job(silent=60.1).lost
    assert job(status="Stopping", silent=1000.0).lost
    assert not job(status="Stopped", silent=1000.0).lost


def test_a_request_to_stop_is_seen_and_kept(store, database):
    with store.writer("bank") as writer, Store(database) as elsewhere:
        writer.job(status="InProgress")
        writer.flush()
        assert not writer.stop_requested
        assert elsewhere.request_stop("bank")
        until(lambda: writer.stop_requested)
        assert elsewhere.request_stop("bank")
        writer.job(status="InProgress", reason="trial 7 of 30")
        writer.flush()
        assert (store.job("bank").status, store.job("bank").reason) == ("Stopping", "trial 7 of 30")
        writer.job(status="Stopped")
        writer.flush()
        assert not elsewhere.request_stop("bank")
    assert store.job("bank").status == "Stopped"


def test_reading_while_writing_sees_whole_batches(store):
    seen: list[int] = []
    with store.writer("bank") as writer:
        for start in range(0, 1000, 100):
            writer.report(*(report(step) for step in range(start, start + 100)))
            writer.ledger(bill(start))
            writer.flush()
            rows = store.reports("bank")
            assert [row.step for row in rows] == list(range(len(rows)))
            seen.append(len(rows))
    assert seen == list(range(100, 1001, 100))


def test_many_threads_may_queue(store):
    with store.writer("bank") as writer:
        threads = [
            threading.Thread(target=lambda t=t: [writer.report(report(s, trial_id=f"t{t}")) for s in range(200)])
            for t in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(store.reports("bank")) == 800


def test_nothing_is_written_after_close(store):
    writer = store.writer("bank")
    writer.report(report(1))
    writer.close()
    writer.close()
    writer.flush()
    for late in (lambda: writer.report(report(2)), lambda: writer.job(reason="late"), lambda: writer.ledger(bill(1))):
        with pytest.raises(WarmbandError, match="closed"):
            late()
    assert not writer._thread.is_alive()
    assert len(store.reports("bank")) == 1


def test_a_commit_whose_answer_was_lost_bills_once(store):
    with store.writer("bank") as writer:
        lost = lose_answers(writer, times=2)
        for number in range(5):
            writer.ledger(bill(number))
            writer.report(report(number))
            if number % 2:
                until(lambda: store.reports("bank"))
    assert len(lost) == 2
    assert [row.worker_seconds for row in store.ledger("bank")] == list(range(5))
    assert [row.step for row in store.reports("bank")] == list(range(5))


def test_rows_wait_while_the_connections_break(store, caplog):
    with store.writer("bank") as writer, caplog.at_level(logging.WARNING):
        engine = writer._engine
        refused: list[str] = []

        def refuse(connection, cursor, statement, *_):
            if len(refused) < 3 and threading.current_thread() is writer._thread:
                refused.append(statement)
                raise sa.exc.OperationalError(statement, None, Exception("server closed the connection"))

        sa.event.listen(engine, "before_cursor_execute", refuse)
        writer.ledger(*(bill(number) for number in range(3)))
        until(lambda: len(refused) == 3)
        writer.ledger(*(bill(number) for number in range(3, 6)))
        writer.flush()
    assert [row.worker_seconds for row in store.ledger("bank")] == list(range(6))
    assert [record.getMessage().count("server closed") for record in caplog.records] == [1]


def test_a_batch_of_several_statements_is_there_whole_or_not_at_all(store, monkeypatch):
    monkeypatch.setattr(batch, "ROWS_AT_ONCE", 7)
    statements: list[str] = []
    seen: list[int] = []
    with store.writer("bank") as writer:

        def refuse(connection, cursor, statement, *_):
            if "INTO reports" in statement and threading.current_thread() is writer._thread:
                statements.append(statement)
                if len(statements) == 3:
                    seen.append(len(store.reports("bank")))
                    raise sa.exc.OperationalError(statement, None, Exception("server closed the connection"))

        sa.event.listen(writer._engine, "before_cursor_execute", refuse)
        writer.report(*map(report, range(100)))
        writer.flush()
        sa.event.remove(writer._engine, "before_cursor_execute", refuse)
    assert seen == [0]
    assert len(statements) == 3 + 15
    assert [row.step for row in store.reports("bank")] == list(range(100))


# ---- SQLite


@pytest.mark.parametrize(
    ("busy_seconds", "locked"), [(30.0, 0.7), (0.02, 1.5)], ids=["SQLite waits", "the writer tries again"]
)
def test_rows_arrive_after_a_lock_of_the_database(tmp_path, monkeypatch, busy_seconds, locked):
    monkeypatch.setattr(reached, "BUSY_SECONDS", busy_seconds)
    with Store(sqlite_url(tmp_path)) as store:
        store.create_job(job())
        lock = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        with store.writer("bank") as writer:
            writer.ledger(bill(0))
            writer.flush()
            lock.execute("BEGIN IMMEDIATE")
            freed = time.monotonic() + locked
            number = 1
            while time.monotonic() < freed:
                writer.ledger(bill(number))
                writer.report(report(number))
                number += 1
                time.sleep(0.02)
            assert len(store.ledger("bank")) == 1
            lock.execute("ROLLBACK")
            writer.flush()
            assert [row.worker_seconds for row in store.ledger("bank")] == list(range(number))
            assert [row.step for row in store.reports("bank")] == list(range(1, number))
        lock.close()


def test_flush_and_close_give_up_and_say_what_waits(impatient, local, tmp_path):
    lock = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    writer = local.writer("bank")
    lock.execute("BEGIN IMMEDIATE")
    writer.report(report(1), report(2))
    writer.ledger(bill(1))
    with pytest.raises(WarmbandError, match=r"3 rows of job 'bank' still wait after 0\.2 s .*database is locked"):
        writer.flush(timeout=0.2)
    with pytest.raises(WarmbandError, match="3 rows of job 'bank'"):
        writer.close(timeout=0.2)
    writer._thread.join(60.0)
    lock.execute("ROLLBACK")
    lock.close()
    assert not writer._thread.is_alive()
    assert local.reports("bank") == []


@pytest.fixture
def full(impatient, local, tmp_path, monkeypatch) -> Iterator[tuple[JobWriter, sqlite3.Connection]]:
    """A writer with as many rows as may wait, since its database is locked."""
    monkeypatch.setattr(store_writer, "MOST_WAITING", 5)
    monkeypatch.setattr(store_writer, "LONGEST_PAUSE", 0.05)
    lock = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
    writer = local.writer("bank")
    lock.execute("BEGIN IMMEDIATE")
    writer.report(*map(report, range(1, 5)))
    writer.report(report(4))
    until(lambda: writer._in_hand > 0)
    writer.ledger(bill(1))
    yield writer, lock
    writer._abandoned = True
    writer._wake.set()
    lock.close()


def test_a_job_pauses_while_as_many_rows_wait_as_may_and_none_is_lost(full, local, caplog):
    writer, lock = full
    paused = threading.Thread(target=lambda: [writer.report(report(step)) for step in range(5, 200)])
    with caplog.at_level(logging.WARNING):
        paused.start()
        until(lambda: "job bank pauses: 5 rows wait for its store" in caplog.text)
        assert paused.is_alive()
        assert writer._queue.size + writer._in_hand == 5, "the memory stays what it was"
        lock.execute("ROLLBACK")
        paused.join(30)
    assert not paused.is_alive()
    writer.close()
    assert [row.step for row in local.reports("bank")] == list(range(1, 200))
    assert len(local.ledger("bank")) == 1


def test_a_database_that_stays_away_ends_the_pause_with_an_error(full, monkeypatch):
    writer, _ = full
    monkeypatch.setattr(store_writer, "LONGEST_WAIT", 0.1)
    with pytest.raises(WarmbandError, match=r"rows of job 'bank' still wait after 0\.1 s .*database is locked"):
        writer.trial(TrialRow(job="bank", trial_id="t0", number=0))
    monkeypatch.setattr(store_writer, "LONGEST_WAIT", 3600.0)
    with pytest.raises(WarmbandError, match="still wait"):  # At once: the job is ending.
        writer.ledger(bill(2))
    writer.job(status="Failed")
    assert writer._queue.size + writer._in_hand == 5


def test_threads_that_open_a_new_file_at_once_find_its_tables(tmp_path):
    problems: list[Exception] = []

    def open_and_use(url: str, name: str, gate: threading.Barrier) -> None:
        gate.wait()
        try:
            with Store(url) as store:
                store.create_job(job(name))
        except Exception as error:
            problems.append(error)

    for number in range(5):
        url, gate = f"sqlite:///{tmp_path}/{number}.db", threading.Barrier(6)
        threads = [threading.Thread(target=open_and_use, args=(url, f"j{n}", gate)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        with Store(url) as store:
            assert len(store.jobs()) == 6


# The packages' own __init__ would bring Ray, which takes seconds to import.
WRITE_A_JOB = f"""{LIGHT}
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
url, name = sys.argv[1:]
{GATE}
store = Store(url)
store.create_job(JobRow(name=name, created_at=1.0))
with store.writer(name) as writer:
    for trial in range(20):
        writer.trial(TrialRow(job=name, trial_id=f"t{{trial}}", number=trial))
        for step in range(100):
            row = ReportRow(
                job=name, trial_id=f"t{{trial}}", step=step, objective=step / 7, metrics={{"auc": step / 7}}, at=1.0
            )
            writer.report(row)
        writer.ledger(LedgerRow(job=name, gang="g", kind="training", worker_seconds=1.0, at=float(trial)))
        if trial % 5 == 0:
            writer.flush()
    writer.job(status="Completed")
"""


@pytest.mark.process
def test_processes_that_make_and_fill_one_database_at_once_lose_nothing(database):
    names = [f"job-{number}" for number in range(4)]
    with at_once(WRITE_A_JOB, [[database, name] for name in names]) as processes:
        for process in processes:
            process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0] * 4
    with Store(database) as store:
        for name in names:
            reports = store.reports(name)
            steps = [(row.trial_id, row.step) for row in reports]
            assert steps == [(t, s) for t in sorted(f"t{n}" for n in range(20)) for s in range(100)]
            assert all(row.objective == row.metrics["auc"] == row.step / 7 for row in reports)
            assert [row.worker_seconds for row in store.ledger(name)] == [1.0] * 20
            assert (store.job(name).status, store.job(name).lease) == ("Completed", "")
    assert check(database).rows == {
        "jobs": 4,
        "trials": 80,
        "reports": 8_000,
        "ledger": 80,
        "lines": 0,
        "additions": 0,
    }


@pytest.mark.parametrize("content", [b"not a database\n" * 1000, b"x" * 100])
def test_a_file_that_is_no_database_is_refused(tmp_path, content):
    (tmp_path / "store.db").write_bytes(content)
    with pytest.raises(
        ConfigurationError, match=r"store\.db cannot be opened: file is not a database; .*WARMBAND_STORE"
    ):
        Store(sqlite_url(tmp_path))
    assert (tmp_path / "store.db").read_bytes() == content


def test_a_file_that_was_cut_is_said_to_be(tmp_path):
    with Store(sqlite_url(tmp_path)) as store:
        store.create_job(job())
        with store.writer("bank") as writer:
            writer.report(*(report(step) for step in range(5000)))
    whole = (tmp_path / "store.db").read_bytes()
    for share in (0.1, 0.5, 0.9):
        (tmp_path / "store.db").write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(WarmbandError, match=r"store\.db cannot be (opened|read): .*malformed"):
            read_all(tmp_path)


def read_all(folder: Path) -> None:
    with Store(sqlite_url(folder)) as store:
        store.reports(store.job("bank").name)


# ---- mistakes


def test_an_unknown_job_is_an_error_that_names_the_nearest(store):
    with pytest.raises(ConfigurationError, match=r"no job named 'bnak' in .*; did you mean 'bank'"):
        store.job("bnak")
    for call in (store.trials, store.reports, store.ledger, store.request_stop, store.writer, store.delete_job):
        with pytest.raises(ConfigurationError, match="no job named 'bnak'"):
            call("bnak")
    assert store.trials("bank") == store.reports("bank") == store.ledger("bank") == []


def test_a_name_is_given_once(store):
    with pytest.raises(ConfigurationError, match=r"'bank' is already in .*; give another name"):
        store.create_job(job(created_at=5.0))
    assert store.job("bank").created_at == 1000.0


def test_values_are_checked_before_they_are_queued(store):
    mistakes: list[tuple[str, Callable[[JobWriter], None]]] = [
        (r"ledger.worker_seconds is nan: it has to be there, and finite", lambda w: w.ledger(bill(1), bill(math.nan))),
        (r"ledger.kind is 'lunch': give one of starting, training", lambda w: w.ledger(bill(1, kind="lunch"))),
        (
            r"reports.metrics is .*<object .* is a object",
            lambda w: w.report(report(1), report(2, metrics={"x": object()})),
        ),
        (r"reports.step is 1.5", lambda w: w.report(report(1.5))),
        (r"reports.objective is 'high'", lambda w: w.report(report(1, "high"))),
        (r"trials.checkpoint is .*Path.*: give text", lambda w: w.trial(trial_with(checkpoint=Path("c")))),
        (r"trials.number is None", lambda w: w.trial(trial_with(number=None))),
        (r"jobs.status is 'Done': give one of InProgress, Completed", lambda w: w.job(status="Done")),
        (r"no field 'stauts' to change; give one of status, reason", lambda w: w.job(stauts="Failed")),
        (r"no field 'heartbeat'", lambda w: w.job(heartbeat=1.0)),
        (r"no field 'lease'", lambda w: w.job(lease="mine")),
        (r"job is 'other' in a row for the writer of 'bank'", lambda w: w.report(report(1, job="other"))),
    ]
    with store.writer("bank") as writer:
        for message, mistake in mistakes:
            with pytest.raises(ConfigurationError, match=message):
                mistake(writer)
    assert store.trials("bank") == store.reports("bank") == store.ledger("bank") == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("no url", "cannot be used"),
        ("mysql://host/db", "it names mysql"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:////nowhere/at/all/store.db", "cannot be opened: there is no folder /nowhere/at/all"),
        ("sqlite:////tmp", "cannot be opened: /tmp is a folder, not a file"),
    ],
)
def test_a_wrong_url_is_an_error_that_says_what_to_give(url, message):
    with pytest.raises(ConfigurationError, match=f"{message}.*WARMBAND_STORE"):
        Store(url)


def test_a_store_that_may_only_be_read_is_refused_when_a_job_is_made(local, tmp_path):
    with Store(f"sqlite:///file:{tmp_path}/store.db?mode=ro&uri=true") as store:
        assert store.job("bank").name == "bank"
        with pytest.raises(WarmbandError, match=r"cannot be written: attempt to write a readonly database; .*WARMBAND"):
            store.create_job(job("other"))


USE_IT = (
    LIGHT
    + """
from hpo.record.store import JobRow, Store
from trainers.errors import WarmbandError
folder, kind = sys.argv[1:]
try:
    if kind != "ro":
        open(f"{folder}/filler", "wb").write(bytes(10_000_000))
except OSError:
    pass
try:
    Store(f"sqlite:///{folder}/store.db").create_job(JobRow(name="a", created_at=1.0))
except WarmbandError as error:
    print(type(error).__name__, error)
"""
)


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "message"), [("size=64k", "(full|disk I/O error)"), ("ro", "(readonly|unable to open)")]
)
def test_a_full_disk_and_a_read_only_folder_are_refused(tmp_path, kind, message):
    """In a mount namespace of its own, which ends with the process; that takes the rights of root."""
    mounted = f'mount -t tmpfs -o {kind} tmpfs {tmp_path} && exec {sys.executable} -c "$0" {tmp_path} {kind}'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, USE_IT], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    if "denied" in done.stderr or "not permitted" in done.stderr:
        pytest.skip("cannot mount a file system here")
    assert re.match(
        rf"(ConfigurationError|WarmbandError) the store at sqlite:///{tmp_path}/store.db cannot be (opened|written): "
        rf".*{message}.*WARMBAND_STORE$",
        done.stdout.strip(),
    ), done


def test_a_server_that_is_not_there_is_an_error_of_ours():
    with pytest.raises(ConfigurationError, match=r"cannot be opened: .*refused.*WARMBAND_STORE"):
        Store("postgresql+psycopg://me:secret@127.0.0.1:1/none")


def test_errors_hide_the_password():
    with pytest.raises(ConfigurationError) as caught:
        Store("postgresql://me:secret@127.0.0.1:1/none?connect_timeout=1")
    assert "secret" not in str(caught.value)


def test_where_the_store_is(tmp_path, monkeypatch):
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "a b%20" / "home"))
    monkeypatch.delenv("WARMBAND_STORE", raising=False)
    Store().close()
    assert (tmp_path / "a b%20" / "home" / "warmband.db").is_file()
    monkeypatch.setenv("WARMBAND_STORE", f"sqlite:///{tmp_path}/named.db")
    Store().close()
    assert (tmp_path / "named.db").is_file()
    Store(f"sqlite:///{tmp_path}/given.db").close()
    assert (tmp_path / "given.db").is_file()
    (tmp_path / "file").touch()
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("WARMBAND_STORE")
    with pytest.raises(ConfigurationError, match="WARMBAND_HOME"):
        Store()


def test_the_url_may_be_in_a_file(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text(f"sqlite:///{tmp_path}/named.db\n")
    monkeypatch.setenv("WARMBAND_STORE_FILE", str(tmp_path / "secret"))
    Store().close()
    assert (tmp_path / "named.db").is_file()
    monkeypatch.setenv("WARMBAND_STORE", f"sqlite:///{tmp_path}/first.db")
    Store().close()
    assert (tmp_path / "first.db").is_file()
    monkeypatch.delenv("WARMBAND_STORE")
    for wrong, message in (("nowhere", "cannot be read: .*No such file"), ("empty", "is empty; write the store's URL")):
        (tmp_path / "empty").touch()
        monkeypatch.setenv("WARMBAND_STORE_FILE", str(tmp_path / wrong))
        with pytest.raises(ConfigurationError, match=f"WARMBAND_STORE_FILE, .*{wrong}, {message}"):
            Store()


@pytest.mark.system
@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "?password", "the file"])
def test_a_password_is_taken_from_where_libpq_looks_and_shown_nowhere(postgres, tmp_path, monkeypatch, way):
    whole = sa.make_url(postgres.new_database())
    url = f"postgresql://{whole.username}@{whole.host}:{whole.port}/{whole.database}"
    secret = tmp_path / "secret"
    if way == "PGPASSWORD":
        monkeypatch.setenv(way, PASSWORD)
    elif way == "PGPASSFILE":
        secret.write_text(f"{whole.host}:{whole.port}:*:{whole.username}:{PASSWORD}\n")
        secret.chmod(0o600)
        monkeypatch.setenv(way, str(secret))
    elif way == "PGSERVICEFILE":
        secret.write_text(
            f"[warm]\nhost={whole.host}\nport={whole.port}\nuser={whole.username}\npassword={PASSWORD}\n"
            f"dbname={whole.database}\n"
        )
        monkeypatch.setenv(way, str(secret))
        url = "postgresql:///?service=warm"
    elif way == "?password":
        url += f"?password={PASSWORD}"
    else:
        secret.write_text(whole.render_as_string(hide_password=False))
        monkeypatch.setenv("WARMBAND_STORE_FILE", str(secret))
        url = None
    with Store(url) as store:
        store.create_job(job())
        assert PASSWORD not in store.url
        with pytest.raises(ConfigurationError) as caught:
            store.create_job(job())
        assert PASSWORD not in str(caught.value)
    with Store(whole.render_as_string(hide_password=False)) as store:
        assert [each.name for each in store.jobs()] == ["bank"]
    for variable in ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "WARMBAND_STORE_FILE"):
        monkeypatch.delenv(variable, raising=False)
    postgres.drop(whole.render_as_string(hide_password=False))
