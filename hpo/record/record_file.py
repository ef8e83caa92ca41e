"""The file of a record in SQLite, watched by a job's driver: whether it is still the one that the driver writes to.

SQLite goes on with a file that was removed or replaced, and with a write-ahead log that was: all that is written then
is lost with the process, without an error.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

import sqlalchemy as sa

from hpo.record import tables
from hpo.record.database import NOT_THERE, file_of
from trainers import steady
from trainers.errors import WarmbandError
from trainers.home import home

HURRIED_SECONDS = 2.0
"""How long it is waited for where the driver was asked to end."""

AWAY_SECONDS = 60.0
"""How long a file that is not there is waited for: its disk may come back, or who moved it may put it back."""

_LOGS = ("-wal", "-shm")
"""Endings of the names of the files that SQLite keeps beside a record that is open: its log, and the log's index."""


class FileAwayError(WarmbandError):
    """The record's file is not there now, and may come back."""


class FileLostError(WarmbandError):
    """The record's file is not the one that was opened, or will not come back: what is written to it is lost."""


class RecordFile:
    """The file that a job's driver writes to, as it is when this is made; make it with `of`.

    A connection of its own keeps the file and its logs open: SQLite removes the logs with the last connection, so
    nobody does who does not remove them by name.

    Args:
        path: of the file.
        job: that is driven.

    Raises:
        WarmbandError: the file cannot be opened.
    """

    def __init__(self, path: str, job: str) -> None:
        self._job = job
        self.path = Path(path).absolute()
        self._real = Path(os.path.realpath(path))
        self._file = _identity(self.path)
        self._gone_at: float | None = None
        self._away_seconds: float | None = None
        try:
            uri = f"{self.path.as_uri()}?mode=rw"
            self._connection = sqlite3.connect(uri, uri=True, timeout=0.0, check_same_thread=False)
        except sqlite3.Error as error:
            raise WarmbandError(
                f"the record of job {job!r}, {path}, cannot be opened any more: {error}; was it moved or removed?"
            ) from error
        self._stays_open = False
        """Whether the connection is left to the end of the process."""
        self._logs: dict[str, tuple[int, int] | None] = dict.fromkeys(_LOGS)
        """The logs by ending; None where one is not known yet."""
        self._note_logs()
        self._bills = 0
        """Rows of the job's ledger that have to be in the file: none is ever taken out."""
        with suppress(FileAwayError):
            self._bills = self._counted()
        self._touched = self._stamp()

    @classmethod
    def of(cls, engine: sa.Engine, job: str) -> Self | None:
        """The file of an engine's record; None where the record is in no file of a known path."""
        path = file_of(engine)
        return cls(path, job) if path else None

    def billed(self, rows: int) -> None:
        """Take in that so many new rows of the job's ledger are in the file now."""
        self._bills += rows

    def check(self) -> None:
        """See that the file is the one that was opened, and that nobody has written over it.

        It costs four looks at the disk; where the file was written to since the last look, which SQLite does now and
        then, the rows of the job's ledger are counted.

        Raises:
            FileAwayError: there is none; it may come back.
            FileLostError: there is another, or no log of it, or it has lost rows; or there is none for `AWAY_SECONDS`.
        """
        now = _identity(self.path)
        if now is None:
            most = AWAY_SECONDS if self._away_seconds is None else self._away_seconds
            first, self._gone_at = self._gone_at, self._gone_at or time.monotonic()
            if first is not None and time.monotonic() - first > most:
                raise FileLostError(f"is not there any more, for {most:g} s now")
            raise FileAwayError(f"{self.path} {NOT_THERE}")
        self._gone_at = None
        if now != self._file:
            raise FileLostError("was replaced by another file")
        for ending, known in self._logs.items():
            if known is not None and _identity(self._log(ending)) != known:
                raise FileLostError(f"has lost {self._log(ending).name}, which SQLite keeps beside it")
        self._note_logs()
        if (touched := self._stamp()) != self._touched:
            if (found := self._counted()) < self._bills:
                raise FileLostError(
                    f"was written over, as by a copy, and has {found} of {self._bills} bills of the job"
                )
            self._touched = touched

    def _stamp(self) -> tuple[int, int]:
        with suppress(OSError):
            found = os.stat(self.path)
            return found.st_mtime_ns, found.st_size
        return 0, 0

    def _counted(self) -> int:
        """Count the rows of the job's ledger by a new connection, which remembers no page; 0 if none is readable.

        Raises:
            FileAwayError: the database is locked.
        """
        try:
            with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as connection:
                return self._bills_in(connection)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise FileAwayError(str(error)) from None
            return 0
        except sqlite3.DatabaseError:
            return 0

    def is_locked(self) -> bool:
        """Return whether another connection holds the file locked now, so that nobody else can write to it."""
        try:
            with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, timeout=0.0)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        except sqlite3.DatabaseError:
            return False
        return False

    def _bills_in(self, connection: sqlite3.Connection) -> int:
        """Count the rows of the job's ledger that a connection reads."""
        return int(connection.execute("SELECT count(*) FROM ledger WHERE job = ?", [self._job]).fetchone()[0])

    def save(self, lease: str, write: Callable[[sa.Connection], None]) -> Path:
        """Copy the record as its open connection has it into a new file beside it, or where there is room.

        SQLite writes the log into the file when the last connection is closed, and the file may be a backup by then
        that somebody copied into it. So a log that nobody else can find is emptied, unless another job is driven, or
        the connection stays open.

        Args:
            lease: the lease under which it is; a connection that does not know it is to another file.
            write: is given a connection to the copy, for what still waits to be written.

        Returns:
            The file.

        Raises:
            OSError, sqlite3.Error, sqlalchemy.exc.SQLAlchemyError, ValueError: nothing could be saved.
        """
        try:
            found = self._connection.execute("SELECT lease FROM jobs WHERE name = ?", [self._job]).fetchone()
            if found is None or found[0] != lease:
                raise ValueError("the record that is there does not know this driver")
            return self._copied(write)
        finally:
            log = self._logs[_LOGS[0]]
            if log is not None and _identity(self._log(_LOGS[0])) != log:
                self._stays_open = not (self._is_only_driver() and _emptied(log))
            if self._stays_open:
                _leave_open(self._connection)

    def _is_only_driver(self) -> bool:
        """Return whether no other job of the record is driven: its driver, too, may have to save what is in the log."""
        with suppress(sqlite3.Error):
            driven = "SELECT count(*) FROM jobs WHERE name != ? AND lease != ''"
            return bool(self._connection.execute(driven, [self._job]).fetchone() == (0,))
        return False

    def _copied(self, write: Callable[[sa.Connection], None]) -> Path:
        name = f"{self.path.name}.saved-{self._job}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(steady.now()))}"
        problem: Exception | None = None
        for folder in (self.path.parent, home(), Path(tempfile.gettempdir())):
            try:
                copy = _new_file(folder, name)
                with closing(sqlite3.connect(copy)) as goal:
                    self._connection.backup(goal)
                    (found,) = goal.execute("PRAGMA quick_check(1)").fetchone()
                    if found != "ok":
                        raise ValueError(f"what its connection reads is damaged: {found}")
                    if (bills := self._bills_in(goal)) < self._bills:
                        raise ValueError(f"its connection, too, reads {bills} of {self._bills} bills")
                engine = sa.create_engine(f"sqlite:///{copy}")
                try:
                    with engine.begin() as connection:
                        write(connection)
                finally:
                    engine.dispose()
                return copy
            except (OSError, sqlite3.Error, sa.exc.SQLAlchemyError) as error:
                problem = problem or error
        assert problem is not None, "one folder was tried"
        raise problem

    def hurry(self) -> None:
        """Wait for a file that is not there for a moment only."""
        self._away_seconds = HURRIED_SECONDS

    def close(self) -> None:
        """Watch no longer."""
        if not self._stays_open:
            self._connection.close()

    def _note_logs(self) -> None:
        """Remember which logs are there, of those that are not known yet."""
        if None not in self._logs.values():
            return
        with suppress(sqlite3.DatabaseError):  # It is locked, or is no database now.
            self._connection.execute("SELECT 1 FROM jobs LIMIT 1").fetchone()  # Opens the logs.
        self._logs = {ending: known or _identity(self._log(ending)) for ending, known in self._logs.items()}

    def _log(self, ending: str) -> Path:
        return self._real.with_name(self._real.name + ending)


def stopped(connection: sa.Connection, job: str, reason: str) -> None:
    """Write into a saved copy that a job is stopped and that nobody drives it; one that has ended stays as it is."""
    there = tables.JOBS.c.name == job
    connection.execute(sa.update(tables.JOBS).where(there).values(lease=""))
    under_way = tables.JOBS.c.status.in_(("InProgress", "Stopping"))
    ended = {"status": "Stopped", "reason": reason, "ended_at": steady.now()}
    connection.execute(sa.update(tables.JOBS).where(there, under_way).values(ended))


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of the file at a path; None where there is none."""
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def _emptied(file: tuple[int, int]) -> bool:
    """Empty a file that this process has open and that may have no name any more; return whether it is.

    SQLite then cannot read what it would write from there. The file is not opened here: to close it would give up the
    locks that the process has on it.
    """
    with suppress(OSError):  # There is no /proc on this system.
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                found = os.fstat(int(name))
                if (found.st_dev, found.st_ino) == file:
                    os.ftruncate(int(name), 0)
                    return True
    return False


def _leave_open(connection: sqlite3.Connection) -> None:
    """Keep a connection open until the process is gone, also while Python closes what is left at its end.

    From Python 3.12 on, `Connection.setconfig(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE)` does it, too.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _new_file(folder: Path, name: str) -> Path:
    """Make an empty file that its owner alone may read, under a name that is free."""
    for number in range(1, 100):
        path = folder / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return path
    raise FileExistsError(f"{folder / name} and 98 others are there")
