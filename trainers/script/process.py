"""A program's process on one worker: started in a session of its own, followed line by line, and ended whole."""

from __future__ import annotations

import errno
import fcntl
import os
import queue
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import uuid
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from trainers.deletion import delete_file
from trainers.errors import ConfigurationError, GangError, TrialError
from trainers.script.guard import END, PATH, TOKEN, kill_whole, signal_whole, with_token
from trainers.script.launchers import Start
from trainers.script.metric_lines import Lines
from trainers.script.module import warmband_rank
from trainers.script.output_log import OutputLog

TAIL = 200
"""Last lines of output that are kept."""
SHOWN = 500
"""Characters of each of them."""
SHOWN_BYTES = 32 << 20
"""Output of an assignment that goes to the worker's own; what is beyond that is read for metrics alone."""
SETTLE_SECONDS = 1.0
"""How long the output of a program that is held may take to be read."""
GATHER_SECONDS = 0.01
"""How long output gathers before it is read on: a reader that waits for each line would be woken by the program."""
PIPE_BYTES = 1 << 20
"""Output that the program can write meanwhile."""
OPEN_SECONDS = 3.0
"""How long a file that is open for writing has to stay as it is, to be taken for one that is not being written."""
KILL_SECONDS = 10.0
"""How long processes may take to be gone once they were killed."""


class Guard:
    """The guard of a worker, for as long as the worker lives; see `trainers.script.guard`.

    It is no child of the worker: Ray kills the children of a worker that it ends, and would kill the guard before the
    program's other processes, which then stay.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", PATH],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        with suppress(subprocess.TimeoutExpired):  # It goes on as a child of its own, at once.
            self._process.wait(KILL_SECONDS)

    def watch(self, token: str, group: int | None = None) -> None:
        """A program is about to begin, or has begun as this process group."""
        self._say(f"+ {token} {group or ''}\n")

    def forget(self, token: str) -> None:
        """It is over."""
        self._say(f"- {token}\n")

    def close(self) -> None:
        """Ends it, where no program runs any more."""
        self._say(f"{END}\n")  # A process that was forked from this one may hold the pipe open.
        with suppress(OSError):
            self._pipe.close()
        assert self._process.stdout is not None
        over = select.poll()  # Its output ends with it.
        over.register(self._process.stdout.fileno(), select.POLLIN)
        over.poll(KILL_SECONDS * 1000)
        self._process.stdout.close()

    @property
    def _pipe(self) -> Any:
        return self._process.stdin

    def _say(self, line: str) -> None:
        with suppress(OSError):  # It was killed: then nobody watches, and the program itself is not worse off.
            self._pipe.write(line)
            self._pipe.flush()


def _nothing(line: str) -> tuple[()]:
    return ()


class ProgramProcess:
    """A launcher's process and all that it starts.

    Args:
        start: its command line and environment.
        environment: beside those.
        folder: its working directory.
        guard: ends it where this worker is killed.
        read: is given each line of output, in a thread; what it yields goes to `readings`, as its error does.
        log: keeps the output.
        aside: the path of a pipe to be made for the output of ranks that do not count; see `warmband_rank`. None where
            one stream has the output of one rank alone.
        read_aside: is given each line of that.

    Raises:
        TrialError: the command cannot be started.
    """

    def __init__(
        self,
        start: Start,
        *,
        environment: Mapping[str, str],
        folder: Path,
        guard: Guard,
        read: Callable[[str], Iterable[Any]],
        log: OutputLog | None = None,
        aside: Path | None = None,
        read_aside: Callable[[str], Iterable[Any]] = _nothing,
    ) -> None:
        self.token = uuid.uuid4().hex
        """By which all of its processes are known."""
        self._guard = guard
        self._read, self._shown = read, 0
        self._log, self._aside, self._read_aside = log, aside, read_aside
        self._pipe_aside = -1
        self.readings: queue.SimpleQueue[Any] = queue.SimpleQueue()
        """What the lines so far came to."""
        self.tail: deque[str] = deque(maxlen=TAIL)
        """The last lines of output that are not empty."""
        whole = {
            **os.environ,
            **environment,
            **start.environment,
            TOKEN: self.token,
        }
        if aside is not None:
            whole |= {warmband_rank.ASIDE: str(aside), warmband_rank.GIVEN: warmband_rank.given(whole)}
            os.mkfifo(aside, 0o600)
            self._pipe_aside = os.open(aside, os.O_RDWR | os.O_NONBLOCK)  # It has no end, however many write to it.
        guard.watch(self.token)
        try:
            self._process = subprocess.Popen(
                start.command,
                cwd=folder,
                env=whole,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            guard.forget(self.token)
            self._close_aside()
            raise TrialError(_unstarted(start.command[0], error)) from error
        guard.watch(self.token, self._process.pid)
        self._held = False
        self._taking = False
        """Whether output was read, perhaps, that has still to be taken."""
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._follow, name="program output", daemon=True)
        self._reader.start()

    killed: tuple[str, ...] = ()
    """Command lines of processes that did not end when they were asked to."""
    details: ClassVar[dict[str, Any]] = {}
    """What a trial's details say of it: nothing, since it ends with its trial's turn."""
    stays: ClassVar[bool] = False
    """Whether it comes back from its rung by itself, to have further turns."""

    @property
    def exit_code(self) -> int | None:
        """Of the launcher; None while it runs, and below 0 where a signal ended it."""
        return self._process.poll()

    def forget_lines(self) -> None:
        """Forgets its output so far, and what it came to."""
        self.readings, self._shown = queue.SimpleQueue(), 0
        self.tail.clear()

    def writes_in(self, folder: Path) -> bool:
        """Whether it is in the midst of writing a file of a folder; no where there is no /proc."""
        within = os.path.join(os.path.realpath(folder), "")
        for process in with_token(self.token):
            with suppress(OSError):
                for name in os.listdir(f"/proc/{process}/fd"):
                    with suppress(OSError):
                        path = os.readlink(f"/proc/{process}/fd/{name}")
                        if path.startswith(within) and abs(time.time() - os.stat(path).st_mtime) < OPEN_SECONDS:
                            return True
        return False

    def ask_to_end(self) -> None:
        """Sends SIGTERM to the launcher, which passes it on."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def hold(self) -> None:
        """Stops all of its processes where they are, until `go_on` or `end`; what they had said was read then."""
        self._held = True
        for _ in range(2):  # One may have started another meanwhile.
            signal_whole(self._process.pid, self.token, signal.SIGSTOP)
        deadline = time.monotonic() + SETTLE_SECONDS
        # Before output is away from the pipe, it is being taken.
        while self._reader.is_alive() and (self._unread or self._taking) and time.monotonic() < deadline:
            time.sleep(0.002)

    def go_on(self) -> None:
        """Lets its processes run again."""
        self._held = False
        signal_whole(self._process.pid, self.token, signal.SIGCONT)

    def end(self, grace: float) -> None:
        """Ends all of it: asks it to, waits up to `grace` seconds, and kills what is left.

        Returns once none of its processes is there, and all of its output was read.

        Raises:
            GangError: it cannot be ended.
        """
        try:
            self._ask_whole(grace)
        finally:  # Also where a second Ctrl-C cuts the wait short.
            self._kill_whole()

    def _ask_whole(self, grace: float) -> None:
        deadline = time.monotonic() + grace
        asks = self._process.poll() is None and grace > 0
        if asks:
            self.ask_to_end()
        if self._held and grace > 0:  # Nobody hears SIGTERM before.
            self.go_on()
        if asks:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        if time.monotonic() < deadline and signal_whole(self._process.pid, self.token, signal.SIGTERM):
            while time.monotonic() < deadline and with_token(self.token):
                time.sleep(min(0.1, max(0.0, deadline - time.monotonic())))
        if grace > 0:
            self.killed = tuple(filter(None, map(_command_of, with_token(self.token))))

    def _kill_whole(self) -> None:
        kill_whole(self._process.pid, self.token, KILL_SECONDS)
        try:
            self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            said = f"process {self._process.pid} of a program is there {KILL_SECONDS:.0f} s after SIGKILL"
            raise GangError(f"{said}: it waits for a disk or a device of its node that does not answer") from None
        self._guard.forget(self.token)
        self.drain()

    def drain(self) -> None:
        """Waits until all output of a program that is over was read."""
        self._over.set()
        self._reader.join(KILL_SECONDS)

    @property
    def _unread(self) -> bool:
        """Whether one of its pipes holds output."""
        assert self._process.stdout is not None
        found = 0
        with suppress(OSError, ValueError):  # The reader has closed it.
            for pipe in filter(lambda number: number >= 0, (self._process.stdout.fileno(), self._pipe_aside)):
                count = array("i", [0])
                fcntl.ioctl(pipe, termios.FIONREAD, count)
                found += count[0]
        return found > 0

    def _follow(self) -> None:
        """Reads output until its end, or until the program is over and nothing comes any more."""
        assert self._process.stdout is not None
        main = self._process.stdout.fileno()
        streams = {main: (Lines(), self._read)}
        if self._pipe_aside >= 0:
            streams[self._pipe_aside] = (Lines(), self._read_aside)
        came = select.poll()  # It takes descriptors beyond 1023 too.
        for pipe in streams:
            with suppress(OSError, AttributeError):  # Above what a user may have, and not on every system.
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            came.register(pipe, select.POLLIN)
        while streams:
            over = self._over.is_set()  # Before it is looked whether something came, which then is the last.
            ready = came.poll(0 if over and main not in streams else 100)
            if not ready and over:  # A process that was not ended may hold it open.
                break
            if not ready:
                continue
            self._taking = True
            chunks = {pipe: os.read(pipe, 1 << 20) for pipe, _ in ready}
            if any(chunks.values()):
                time.sleep(GATHER_SECONDS)
            for pipe, chunk in chunks.items():
                lines, read = streams[pipe]
                self._show(chunk)
                self._take(lines.take(chunk), read)
                if not chunk:
                    del streams[pipe]
                    self._take(lines.end(), read)
                    if streams:
                        came.unregister(pipe)
            self._taking = False
        for lines, read in streams.values():
            self._take(lines.end(), read)
        self._process.stdout.close()
        self._close_aside()
        if self._log is not None:
            self._log.close()

    def _show(self, chunk: bytes) -> None:
        """Keeps output in the trial's log, and lets it go on to the worker's own."""
        if self._log is not None:
            self._log.write(chunk)
        if self._shown < SHOWN_BYTES:
            self._shown += len(chunk)
            _show(chunk)

    def _close_aside(self) -> None:
        pipe, self._pipe_aside = self._pipe_aside, -1
        if pipe >= 0 and self._aside is not None:
            os.close(pipe)
            with suppress(OSError):  # It went with the gang's folder.
                delete_file(self._aside)

    def _take(self, lines: list[str], read: Callable[[str], Iterable[Any]]) -> None:
        self.tail.extend(line[:SHOWN] for line in lines[-TAIL:] if line.strip())
        try:
            for line in lines:
                for reading in read(line):
                    self.readings.put(reading)
        except ConfigurationError as error:
            self.readings.put(error)


def _command_of(process: int) -> str:
    """Return the command line of a process; empty for one that is over."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def _unstarted(command: str, error: Exception) -> str:
    remedies = {
        errno.ENOENT: "give a program or launcher that every node has, and a first line (#!) that names one",
        errno.EACCES: "make its file executable: chmod +x",
        errno.ENOEXEC: "give its file a first line that names what runs it, such as #!/bin/sh",
        errno.E2BIG: "give shorter hyperparameters: none of them can have more than 128 kB",
    }
    number = error.errno if isinstance(error, OSError) else None
    remedy = remedies.get(number or 0, "give hyperparameters and an environment that an operating system takes")
    return f"{command!r} cannot be started: {os.strerror(number) if number else error}; {remedy}"


def _show(chunk: bytes) -> None:
    """Output goes on to the worker's own, where Ray keeps it and its dashboard shows it."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
