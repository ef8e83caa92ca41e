"""A warm process that has imported what checks of jobs need: it forks itself for each check, which ends in time."""

from __future__ import annotations

import asyncio
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from hpo.record import ACTS_AS, Actor
from hpo.serve.errors import RefusedError

LATE_SECONDS = 5.0
"""That an answer may come behind its deadline, by which the warm process has ended the check."""

_UNTIL = struct.Struct("!d")
"""A check's deadline, by the clock `time.monotonic`, which all processes of a machine share."""


class WarmChecks:
    """Checks in processes that a warm one forks. Of one event loop at a time.

    Args:
        renewed: checks after which another warm process takes the place of this one.
        module: the warm process runs it; its `main` calls `serve`.
    """

    def __init__(self, renewed: int = 100, module: str = "hpo.serve.starting") -> None:
        self._renewed, self._module = renewed, module
        self._warm: _Warm | None = None

    def prepare(self) -> None:
        """Starts the warm process if there is none, so that the first check does not wait for its imports."""
        if self._warm is None or self._warm.over or self._warm.begun >= self._renewed:
            if self._warm is not None:
                self._warm.close_when_idle()
            self._warm = _Warm(self._module)

    async def ask(self, given: Mapping[str, Any], who: Actor, seconds: float) -> Any:
        """Has a check done, and returns its answer.

        Args:
            given: what is to be checked.
            who: asks for it.
            seconds: after which the check is ended, with all processes that it has started.

        Raises:
            RefusedError: it has not answered in time, or ended without an answer.
        """
        until = time.monotonic() + seconds
        self.prepare()
        assert self._warm is not None
        try:
            out = await self._warm.ask({**given, "who": who.to_text()}, until)
        except OSError:  # The warm process is gone.
            self._warm.end()
            out = b""
        if out:
            return json.loads(out)
        if time.monotonic() >= until:
            message = f"the check took more than {seconds:g} s, and was ended; name smaller data, or create the job"
            raise RefusedError(503, "Unavailable", message)
        raise RefusedError(500, "Internal", "the process that was to check it ended without an answer")

    def end(self) -> None:
        """Ends the warm process and all checks."""
        if self._warm is not None:
            self._warm.end()
            self._warm = None


class _Warm:
    """One warm process, as the server has it."""

    def __init__(self, module: str) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,  # The process prints into the server's log.
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.begun = self._under_way = 0
        self._closing = False

    @property
    def over(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    async def ask(self, given: Mapping[str, Any], until: float) -> bytes:
        """The answer of a check; empty where it ended without one.

        Raises:
            OSError: the warm process is gone.
        """
        self.begun += 1
        self._under_way += 1
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._control, [_UNTIL.pack(until)], [theirs.fileno()])
            reader, writer = await asyncio.open_connection(sock=ours)
            try:
                async with asyncio.timeout(until + LATE_SECONDS - time.monotonic()):
                    writer.write(json.dumps(given).encode())
                    writer.write_eof()
                    return await reader.read()
            except TimeoutError:
                self.end()  # It does not do what it has to.
                return b""
            finally:
                writer.close()
        finally:
            self._under_way -= 1
            if self._closing:
                self.close_when_idle()

    def close_when_idle(self) -> None:
        """Ends it once no check is under way."""
        self._closing = True
        if not self._under_way:
            self.end()

    def end(self) -> None:
        """Ends it, with all checks: it notices that nobody holds the other end."""
        self._control.close()
        try:
            self._process.wait(0.0 if self._process.poll() is not None else 2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def serve(control: socket.socket, prepare: Callable[[], Any], perform: Callable[[dict[str, Any]], Any]) -> None:
    """Forks for each check, and ends each at its deadline with its process group; in the warm process.

    Args:
        control: gives a connection and a deadline for each check. At its end all checks are ended.
        prepare: imports what checks need, if it can: it opens no file that a check would share.
        perform: does a check.
    """
    try:
        prepare()
    except Exception:  # A check of what is not installed says so itself, and others do without.
        traceback.print_exc()
    checks: dict[int, float] = {}
    while True:
        wait = min((until - time.monotonic() for until in checks.values()), default=3600.0)
        # Whether a check has ended is looked at now and then: all that hangs on it is its entry here.
        ready, _, _ = select.select([control], [], [], max(0.0, min(wait, 1.0 if checks else wait)))
        if ready:
            told, connections, _, _ = socket.recv_fds(control, _UNTIL.size, 1)
            if not told:
                break
            connection = socket.socket(fileno=connections[0])
            if (pid := os.fork()) == 0:
                _check(control, connection, perform)
            with suppress(OSError):
                os.setpgid(pid, pid)  # The check does it, too: whoever comes first.
            checks[pid] = _UNTIL.unpack(told)[0]
            connection.close()
        for pid in [pid for pid, until in checks.items() if _is_over(pid, until)]:
            del checks[pid]
    for pid in checks:
        _is_over(pid, 0.0)
    os._exit(0)  # All that was imported would else be taken down one by one.


def _is_over(pid: int, until: float) -> bool:
    """Whether a check has ended; one that is late is ended, with its group."""
    late = time.monotonic() >= until
    if late:
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    return os.waitpid(pid, 0 if late else os.WNOHANG)[0] != 0


def _check(control: socket.socket, connection: socket.socket, perform: Callable[[dict[str, Any]], Any]) -> None:
    """Does one check, in a process of its own, which ends here."""
    try:
        os.setpgid(0, 0)
        control.close()
        with connection.makefile("rb") as asked:
            given = json.load(asked)
        os.environ[ACTS_AS] = given.pop("who")
        connection.sendall(json.dumps(perform(given)).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, io.UnsupportedOperation):
                stream.flush()
        os._exit(0)
