"""A job's writer: nothing is lost or written twice, whatever the database does, and nothing wrong is queued."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from hpo.record import database as reached, writer as store_writer
from hpo.record.store import JobWriter, Store, TrialRow
from hpo.record.writer import FLUSH_EVERY
from tests.support.refusals import missing_names, refuses
from tests.support.rows import bill, job, report, sqlite_url, until
from trainers.errors import WarmbandError


@pytest.fixture
def impatient(monkeypatch):
    """A locked database is an error at once, so that the writer's own retries are what is tested."""
    monkeypatch.setattr(reached, "BUSY_SECONDS", 0.02)


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
        until(lambda: any(not missing_names(text, "bank", "5 rows", "store") for text in caplog.messages))
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
    with refuses(WarmbandError, field="bank", value=5, remedy=("0.1 s", "locked")):
        writer.trial(TrialRow(job="bank", trial_id="t0", number=0))
    monkeypatch.setattr(store_writer, "LONGEST_WAIT", 3600.0)
    with refuses(WarmbandError, field="bank", value=5, remedy="locked"):  # At once: the job is ending.
        writer.ledger(bill(2))
    writer.job(status="Failed")
    assert writer._queue.size + writer._in_hand == 5
