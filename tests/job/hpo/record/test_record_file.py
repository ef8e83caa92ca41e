"""A record in SQLite whose file is removed, moved, replaced or left without its log while a job is driven."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from hpo.record import record_file
from hpo.record.store import JobWriter, Store, TrialRow
from tests.support.refusals import mentions, missing_names
from tests.support.rows import bill, job, report, sqlite_url, until
from trainers.errors import RecordLostError, WarmbandError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """That of the record, with one job."""
    with Store(sqlite_url(tmp_path)) as store:
        store.create_job(job())
    return tmp_path / "store.db"


def begin(store: Store, name: str = "bank") -> JobWriter:
    writer = store.writer(name)
    writer.trial(TrialRow(job=name, trial_id="t0", number=0))
    writer.report(*(report(step, job=name) for step in range(1, 6)))
    writer.job(status="InProgress")
    writer.flush()
    return writer


def lost(writer: JobWriter) -> RecordLostError:
    """The error that the writer's next caller gets, once it has noticed."""
    writer.report(report(6, job=writer.name))
    with pytest.raises(RecordLostError) as raised:
        writer.flush()
    with pytest.raises(RecordLostError):
        writer.report(report(7, job=writer.name))
    with pytest.raises(RecordLostError):
        writer.close()
    return raised.value


def saved_in(folder: Path) -> Path:
    (saved,) = folder.glob("store.db.saved-bank-*")
    return saved


def check_saved(saved: Path, status: str = "Stopped") -> None:
    """All that was recorded, and what waited, is in the copy, in which the job can be resumed."""
    assert saved.stat().st_mode & 0o777 == 0o600
    with Store(f"sqlite:///{saved}") as store:
        row = store.job("bank")
        assert (row.status, row.lease) == (status, "")
        assert [each.step for each in store.reports("bank")] == [1, 2, 3, 4, 5, 6]
        with store.writer("bank"):
            pass


def removed(file: Path) -> None:
    file.unlink()


def removed_with_its_logs(file: Path) -> None:
    for path in file.parent.glob("store.db*"):
        path.unlink()


def replaced(file: Path) -> None:
    with sqlite3.connect(file.with_name("backup.db")) as backup:
        backup.execute("CREATE TABLE another (number)")
    backup.close()
    os.replace(file.with_name("backup.db"), file)


def without(ending: str) -> Callable[[Path], None]:
    def act(file: Path) -> None:
        file.with_name(f"store.db{ending}").unlink()

    act.__name__ = f"without{ending}"
    return act


@pytest.mark.parametrize(
    "act", [removed, removed_with_its_logs, replaced, without("-wal"), without("-shm")], ids=lambda act: act.__name__
)
def test_a_driver_notices_saves_its_state_and_ends(
    file: Path, act: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_file, "AWAY_SECONDS", 0.3)
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        act(file)
        error = lost(writer)
    saved = saved_in(file.parent)
    mentions(str(error), str(file), str(saved), "hpo resume bank")
    check_saved(saved)


def test_it_notices_without_anything_to_write(file: Path) -> None:
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        replaced(file)
        until(lambda: writer.lost_lease)
        with pytest.raises(RecordLostError):
            writer.close()


def test_a_writer_begins_and_ends_while_another_thread_connects(file: Path) -> None:
    """SQLAlchemy lets no listener be added or removed meanwhile."""
    met = []

    def write(store: Store) -> None:
        begin(store).close()
        met.append("writer")

    with Store(sqlite_url(file.parent)) as store:

        def connected(*_: object) -> None:
            if not met:
                met.append("connection")
                thread = threading.Thread(target=write, args=[store])
                thread.start()
                thread.join(60.0)

        with store._engine.connect():  # So that reading the jobs has to connect anew.
            sa.event.listen(store._engine, "connect", connected, insert=True)
            assert [row.name for row in store.jobs()] == ["bank"]
    assert met == ["connection", "writer"]


def test_a_saved_record_goes_on_in_the_place_of_the_lost_one(file: Path) -> None:
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        replaced(file)
        lost(writer)
    for path in file.parent.glob("store.db-*"):
        path.unlink()
    os.replace(saved_in(file.parent), file)
    with Store(sqlite_url(file.parent)) as store, store.writer("bank") as writer:
        assert store.job("bank").status == "Stopped"
        mentions(store.job("bank").reason, str(file))
        writer.report(report(7))
        writer.flush()
        assert len(store.reports("bank")) == 7


def test_two_drivers_of_one_lost_record_each_go_on_in_a_copy_of_their_own(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message leads to the copy of its own job, and to follow both loses none of them."""
    monkeypatch.setattr(record_file, "AWAY_SECONDS", 0.3)
    stores = {name: Store(sqlite_url(file.parent)) for name in ("bank", "churn")}
    stores["churn"].create_job(job("churn"))
    writers = {name: begin(store, name) for name, store in stores.items()}
    assert writers["churn"]._file is not None
    writers["churn"]._file._away_seconds = 1.5  # It notices when the other has saved what they share.
    removed_with_its_logs(file)
    said = {name: str(lost(writer)) for name, writer in writers.items()}
    for store in stores.values():
        store.close()
    assert not file.exists(), "nobody makes an empty record in its place"
    for name, text in said.items():
        (saved,) = file.parent.glob(f"store.db.saved-{name}-*")
        url = f"sqlite:///{saved}"
        mentions(text, str(file), f"hpo resume {name} --store {url}")
        with Store(url) as copy, copy.writer(name):
            assert copy.job(name).status == "Stopped"
            assert [each.step for each in copy.reports(name)] == [1, 2, 3, 4, 5, 6]


def test_a_connection_that_comes_later_makes_no_file(file: Path) -> None:
    with Store(sqlite_url(file.parent)) as store:
        store._engine.dispose()
        removed_with_its_logs(file)
        with pytest.raises(WarmbandError) as raised:
            store.jobs()
        assert not file.exists()
        mentions(str(raised.value), str(file), "moved", "removed")


def test_the_documented_way_to_put_a_backup_back_with_a_driver_at_work(file: Path) -> None:
    """It says that no job may run; one that does loses nothing, and leaves the backup as it was put there."""
    backup = file.with_name("backup.db")
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        with sqlite3.connect(file) as connection:
            connection.execute("VACUUM INTO ?", [str(backup)])
        connection.close()
        writer.report(report(6))
        writer.flush()
        before = backup.read_bytes()
        shutil.copyfile(backup, file)  # As `cp` does: into the file that is there.
        for ending in ("-wal", "-shm"):
            file.with_name(f"store.db{ending}").unlink()
        until(lambda: writer.lost_lease)
        with pytest.raises(RecordLostError) as raised:
            writer.flush()
        with pytest.raises(RecordLostError):
            writer.close()
    assert "hpo resume bank" in str(raised.value)
    assert file.read_bytes() == before, "the backup is not written over"
    with Store(sqlite_url(file.parent)) as store:
        assert [each.step for each in store.reports("bank")] == [1, 2, 3, 4, 5]


def copied_over(file: Path) -> None:
    """By a backup, while all that was written since is in the file and not in its log."""
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    shutil.copyfile(file.with_name("backup.db"), file)


def emptied(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    os.truncate(file, 0)


@pytest.mark.parametrize("act", [copied_over, emptied], ids=lambda act: act.__name__)
def test_a_file_that_is_written_over_while_its_logs_stay_is_noticed(file: Path, act: Callable[[Path], None]) -> None:
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        writer.ledger(bill(1.0))
        writer.flush()
        with sqlite3.connect(file) as connection:
            connection.execute("VACUUM INTO ?", [str(file.with_name("backup.db"))])
        connection.close()
        writer.ledger(*(bill(number) for number in range(20)))
        writer.flush()
        act(file)
        until(lambda: writer.lost_lease)
        with pytest.raises(RecordLostError) as raised:
            writer.close()
    mentions(str(raised.value), "bank", str(file), "hpo resume bank")


def test_checkpoints_of_sqlite_are_no_fault(file: Path) -> None:
    with Store(sqlite_url(file.parent)) as store, store.writer("bank") as writer:
        for number in range(5):
            writer.ledger(bill(number))
            writer.flush()
            with sqlite3.connect(file) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
        writer.flush()
        assert len(store.ledger("bank")) == 5


def test_that_all_other_connections_are_closed_is_no_fault(file: Path) -> None:
    """One that is in use while its pool is disposed is closed later, and SQLAlchemy tells nobody."""
    with Store(sqlite_url(file.parent)) as store, store.writer("bank") as writer:
        for number in range(4):
            with store._engine.connect() as connection:
                connection.execute(sa.text("SELECT 1"))
                store._engine.dispose()
            gc.collect()
            store._engine.dispose()
            writer.ledger(bill(number))
            writer.flush()
            assert writer._file is not None
            writer._file.check()
        assert len(store.ledger("bank")) == 4


def test_a_file_that_was_moved_and_comes_back_is_gone_on_with(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    aside = file.with_name("aside.db")
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        file.rename(aside)
        writer.report(report(6))
        with pytest.raises(WarmbandError) as raised:
            writer.flush(1.0)
        mentions(str(raised.value), str(file))
        assert not isinstance(raised.value, RecordLostError)
        assert not missing_names(caplog.text, "bank", str(file), "moved")
        aside.rename(file)
        writer.flush()
        writer.close()
        assert [each.step for each in store.reports("bank")] == [1, 2, 3, 4, 5, 6]
    assert not list(file.parent.glob("*.saved-*"))


def test_a_folder_that_is_gone_is_saved_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "AWAY_SECONDS", 0.3)
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "disk").mkdir()
    with Store(sqlite_url(tmp_path / "disk")) as store:
        store.create_job(job())
        writer = begin(store)
        shutil.rmtree(tmp_path / "disk")
        error = lost(writer)
    saved = saved_in(tmp_path / "home")
    mentions(str(error), str(saved))
    check_saved(saved)


def test_what_cannot_be_saved_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path, name: str) -> Path:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(record_file, "_new_file", refuse)
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        replaced(file)
        error = lost(writer)
    mentions(str(error), os.strerror(28), "hpo resume bank")


def test_a_job_that_ended_meanwhile_stays_as_it_ended(file: Path) -> None:
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        replaced(file)
        writer.report(report(6))
        writer.job(status="Completed")
        with pytest.raises(RecordLostError):
            writer.close()
    check_saved(saved_in(file.parent), status="Completed")


def test_a_database_that_failed_for_a_while_is_no_lost_record(file: Path) -> None:
    """All connections are closed then, by which SQLite removes its logs; the next ones make new ones."""
    with Store(sqlite_url(file.parent)) as store:
        writer = begin(store)
        exchange, failures = writer._exchange, []

        def fails_twice(batch: object) -> None:
            if len(failures) < 2:
                failures.append(1)
                store._engine.dispose()
                raise OSError("the disk said no")
            exchange(batch)

        writer._exchange = fails_twice
        writer.report(report(6))
        writer.flush()
        writer.close()
        assert len(store.reports("bank")) == 6
