"""A real PostgreSQL server of the tests' own: Debian's programs, a folder and a port that nobody else has."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Self

import sqlalchemy as sa

from tests.support.ports import free_port

PASSWORD = "planted-Secret-7"
_AS_ROOT = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups")
"""PostgreSQL refuses to run as root."""


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, the newest; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    return found[-1] if found else Path(on_path).parent if on_path else None


class Postgres:
    """A server that is up until it is stopped, killed or frozen, and can be started again on the same port."""

    def __init__(self, *settings: str) -> None:
        bin_folder = programs()
        assert bin_folder is not None, "PostgreSQL is not installed"
        self.programs = bin_folder
        # Not in pytest's folder: the server's user may not go there, and a socket's path has to be short.
        self.folder = Path(tempfile.mkdtemp(prefix="warmband-pg-"))
        self._user = _AS_ROOT if os.geteuid() == 0 else ()
        if self._user:
            shutil.chown(self.folder, "postgres", "postgres")
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        command = ["initdb", "-D", "data", "-U", "warm", "--pwfile=password", "-A", "scram-sha-256", "-E", "UTF8"]
        self._run(*command, "--no-sync", "--no-instructions")
        self._settings = [f"-c{setting}" for setting in (f"unix_socket_directories={self.folder}", *settings)]
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def start(self) -> None:
        """Starts it and waits until it answers. It ends with this process, whatever becomes of that."""
        assert self._process is None
        command = [self.programs / "postgres", "-D", "data", "-h", "127.0.0.1", "-p", str(self.port), *self._settings]
        guard = ("setpriv", *self._user[1:], "--pdeathsig=INT")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*guard, *command], cwd=self.folder, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                with sa.create_engine(self.url("postgres"), poolclass=sa.NullPool).connect():
                    return
            except sa.exc.OperationalError as error:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise AssertionError((self.folder / "log").read_text()) from error
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends it: SIGINT in order, SIGQUIT as after a crash."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        """Kills it with all its processes, as the end of its machine does."""
        assert self._process is not None
        children = self._children()
        self._process.kill()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(60)
        self._process = None

    def freeze(self) -> None:
        """Stops all its processes where they are, as a machine does that hangs: connections stay, nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets them go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """Signals the server, which makes no more processes once it stands still, and then those that it made."""
        assert self._process is not None
        self._process.send_signal(number)
        for pid in self._children():
            with suppress(ProcessLookupError):  # It came to its end meanwhile, as an autovacuum worker may.
                os.kill(pid, number)

    def _children(self) -> list[int]:
        assert self._process is not None
        text = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._admin(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drops a database, whoever is connected to it."""
        self._admin(f"DROP DATABASE {sa.make_url(url).database} WITH (FORCE)")

    def of_another_user(self, url: str, password: str = PASSWORD) -> str:
        """The URL of a database for a user of its own, who is no superuser; and it is theirs now."""
        known, name = sa.make_url(url), f"user_{uuid.uuid4().hex[:12]}"
        self._admin(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        self._admin(f"ALTER DATABASE {known.database} OWNER TO {name}")
        return known.set(username=name, password=password).render_as_string(hide_password=False)

    def limit(self, url: str, connections: int) -> None:
        """Lets the user of a URL, who is no superuser, have so many connections, -1 for any number, and ends theirs."""
        self._admin(f"ALTER ROLE {sa.make_url(url).username} CONNECTION LIMIT {connections}")
        self._end_connections(url)

    def read_only(self, url: str) -> None:
        """Lets a database be read alone, as one that failed over, and ends its connections."""
        self._admin(f"ALTER DATABASE {sa.make_url(url).database} SET default_transaction_read_only = on")
        self._end_connections(url)

    def writable(self, url: str) -> None:
        """Ends that for connections to come; those that are there stay as they are."""
        self._admin(f"ALTER DATABASE {sa.make_url(url).database} RESET default_transaction_read_only")

    def url(self, database: str) -> str:
        """A URL, with the password, of one of its databases."""
        return f"postgresql+psycopg://warm:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def by_socket(self, url: str) -> str:
        """The URL of the same database by the server's socket, which is a file: other networks have no way to it."""
        known = sa.make_url(url).set(host=None, port=None)
        known = known.update_query_dict({"host": str(self.folder), "port": str(self.port)})
        return known.render_as_string(hide_password=False)

    def _end_connections(self, url: str) -> None:
        name = sa.make_url(url).database
        self._admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

    def _admin(self, statement: str) -> None:
        engine = sa.create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.execute(sa.text(statement))

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._user, str(self.programs / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
