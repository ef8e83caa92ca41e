"""A job's writer: nothing is lost or written twice, whatever the database does, and nothing wrong is queued."""

from __future__ import annotations

import math
import sqlite3
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from hpo.record import batch, database as reached, writer as store_writer
from hpo.record.store import TrialRow
from hpo.record.tables import LOST_AFTER
from tests.support.refusals import refuses, refuses_each
from tests.support.rows import bill, report, silence, trial_with, until
from trainers.errors import ConfigurationError, WarmbandError


@pytest.fixture
def impatient(monkeypatch):
    """A locked database is an error at once, so that the writer's own retries are what is tested."""
    monkeypatch.setattr(reached, "BUSY_SECONDS", 0.02)


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


def test_an_idle_writer_is_heard_of(store, monkeypatch):
    monkeypatch.setattr(store_writer, "BEAT_EVERY", 0.05)
    silence(store, LOST_AFTER + 1.0)
    assert store.job("bank").lost
    with store.writer("bank"):
        until(lambda: not store.job("bank").lost)
        first = store.job("bank").heartbeat
        until(lambda: store.job("bank").heartbeat > first)


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
        with refuses(WarmbandError, field="bank", value="closed", remedy="Store.writer"):
            late()
    assert not writer._thread.is_alive()
    assert len(store.reports("bank")) == 1


def test_values_are_checked_before_they_are_queued(store):
    with store.writer("bank") as w:
        refuses_each(
            [
                (lambda: w.ledger(bill(1), bill(math.nan)), ("ledger.worker_seconds", "nan", "finite")),
                (lambda: w.ledger(bill(1, kind="lunch")), ("ledger.kind", "lunch", "starting", "training")),
                (lambda: w.report(report(1), report(2, metrics={"x": object()})), ("reports.metrics", "object")),
                (lambda: w.report(report(1.5)), ("reports.step", 1.5)),
                (lambda: w.report(report(1, "high")), ("reports.objective", "high")),
                (lambda: w.trial(trial_with(checkpoint=Path("c"))), ("trials.checkpoint", repr(Path("c")), "text")),
                (lambda: w.trial(trial_with(number=None)), ("trials.number", None)),
                (lambda: w.job(status="Done"), ("jobs.status", "Done", "InProgress", "Completed")),
                (lambda: w.job(stauts="Failed"), ("stauts", "status", "reason")),
                (lambda: w.job(heartbeat=1.0), ("heartbeat", "status", "reason")),
                (lambda: w.job(lease="mine"), ("lease", "status", "reason")),
                (lambda: w.report(report(1, job="other")), ("job", "other", "bank")),
            ],
            ConfigurationError,
        )
    assert store.trials("bank") == store.reports("bank") == store.ledger("bank") == []


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


def test_flush_and_close_give_up_and_say_what_waits(impatient, local, tmp_path):
    lock = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    writer = local.writer("bank")
    lock.execute("BEGIN IMMEDIATE")
    writer.report(report(1), report(2))
    writer.ledger(bill(1))
    with refuses(WarmbandError, field=("bank", local.url), value=3, remedy=("0.2 s", "locked")):
        writer.flush(timeout=0.2)
    with refuses(WarmbandError, field=("bank", local.url), value=3, remedy="locked"):
        writer.close(timeout=0.2)
    writer._thread.join(60.0)
    lock.execute("ROLLBACK")
    lock.close()
    assert not writer._thread.is_alive()
    assert local.reports("bank") == []
