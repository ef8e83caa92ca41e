"""A program that stays loaded on a worker: one launcher's processes, which run it once for each trial."""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from trainers.script.launchers import Start
from trainers.script.output_log import OutputLog
from trainers.script.process import Guard, ProgramProcess

HOST = str(Path(__file__).parents[1] / "module" / "warmband_host.py")
"""What the launcher starts in place of the program."""
ADDRESS = "WARMBAND_ORDERS"
"""The variable by which it finds this worker."""
MARK = "\x1d\x1d\x1d"
"""The last line of a trial's output."""
DRAIN_SECONDS = 2.0
"""How long that line may take to come, behind the word that the trial is over, and the line before."""
CLOSE_SECONDS = 5.0
"""How long processes may take to end that have no more orders."""


@dataclass(slots=True)
class _Host:
    """A process of the program, at the other end of a connection."""

    connection: socket.socket
    known: bool = False
    received: bytes = b""
    answer: dict[str, Any] | None = None
    """What the trial left behind, once its turn is over."""

    def send(self, line: bytes) -> None:
        """Gives an order; one that is gone shows by its launcher's end."""
        self.answer = None
        with suppress(OSError):
            self.connection.settimeout(CLOSE_SECONDS)
            self.connection.sendall(line)
            self.connection.setblocking(False)

    def lines(self) -> list[bytes]:
        """Whole lines that have come."""
        with suppress(BlockingIOError, OSError):
            while data := self.connection.recv(1 << 16):
                self.received += data
        *whole, self.received = self.received.split(b"\n")
        return whole


@dataclass(slots=True, kw_only=True)
class _Turn:
    """A trial's turn."""

    order: bytes
    marks: int = 0
    """Processes whose output has come to its end."""
    lines: int = 0
    """Of output, so far."""


class KeptProcess:
    """A launcher's processes; each turn of theirs looks like a `ProgramProcess` of its own, from outside.

    Args:
        start: of `HOST`.
        environment: beside the launcher's variables.
        folder: the working directory until the first turn.
        guard: ends them where this worker is killed.
        read: see `ProgramProcess`.
        log: see `ProgramProcess`.
        aside: see `ProgramProcess`.
        read_aside: see `ProgramProcess`.
        processes: that the launcher starts.

    Raises:
        TrialError: the launcher cannot be started.
    """

    def __init__(
        self,
        start: Start,
        *,
        environment: Mapping[str, str],
        folder: Path,
        guard: Guard,
        read: Callable[[str], Iterable[Any]],
        log: OutputLog,
        aside: Path | None,
        read_aside: Callable[[str], Iterable[Any]],
        processes: int,
    ) -> None:
        self._read, self._read_aside, self._count = read, read_aside, processes
        self._hosts: list[_Host] = []
        self._turn = _Turn(order=b"")
        self._ended = False
        self._server = socket.create_server(("127.0.0.1", 0), backlog=processes)
        self._server.setblocking(False)
        try:
            self._process = ProgramProcess(
                start,
                environment={**environment, ADDRESS: "{}:{}".format(*self._server.getsockname())},
                folder=folder,
                guard=guard,
                read=lambda line: self._line(line, self._read),
                log=log,
                aside=aside,
                read_aside=lambda line: self._line(line, self._read_aside),
            )
        except BaseException:
            self._server.close()
            raise

    stays: ClassVar[bool] = True
    """See `ProgramProcess.stays`."""

    def begin(self, order: Mapping[str, Any]) -> None:
        """Begins a turn.

        Args:
            order: see the module `warmband_host`.
        """
        self._process.forget_lines()
        self._turn = _Turn(order=json.dumps(dict(order)).encode() + b"\n")
        for host in self._hosts:
            host.send(self._turn.order)

    @property
    def alive(self) -> bool:
        """Whether it can have another turn: the last one is over, left nothing behind, and all processes are there."""
        return not self._ended and self._returned and not self._said("left") and self._process.exit_code is None

    @property
    def details(self) -> dict[str, Any]:
        """What a turn left behind: values that are made anew, and why all of it is loaded anew."""
        changed, left = self._said("changed"), self._said("left")
        found: dict[str, Any] = {"kept_values_changed": changed} if changed else {}
        if left:
            found["loaded_anew"] = f"it left threads running: {', '.join(left)}"
        elif not self._returned:
            found["loaded_anew"] = "it did not return at its last unit"
        return found

    @property
    def exit_code(self) -> int | None:
        """0 once the turn is over; that of the launcher where it has ended."""
        self._hear()
        if (code := self._process.exit_code) is not None:
            return code
        return 0 if self._returned else None

    @property
    def readings(self) -> Any:
        """See `ProgramProcess.readings`: of this turn."""
        return self._process.readings

    @property
    def tail(self) -> deque[str]:
        """See `ProgramProcess.tail`: of this turn."""
        return self._process.tail

    def writes_in(self, folder: Path) -> bool:
        """See `ProgramProcess.writes_in`."""
        return self._process.writes_in(folder)

    def drain(self) -> None:
        """Waits until all output of a turn that is over was read."""
        if self._process.exit_code is not None:
            return self._process.drain()
        lines, deadline = -1, 0.0
        while self._turn.marks < len(self._known) and self._process.exit_code is None:
            if self._turn.lines != lines:  # More of it comes.
                lines, deadline = self._turn.lines, time.monotonic() + DRAIN_SECONDS
            if time.monotonic() > deadline:
                break
            time.sleep(0.002)
        return None

    def end(self, grace: float) -> None:
        """Ends the turn: where it is over they stay, else they are ended; see `ProgramProcess.end`."""
        self._hear()
        if not self.alive and not self._ended:
            self._ended = True
            self._leave()
            self._process.end(grace)

    def close(self) -> None:
        """Ends them: there are no more turns."""
        if self._ended:
            return
        self._ended = True
        self._leave()
        deadline = time.monotonic() + CLOSE_SECONDS
        while self._process.exit_code is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self._process.end(0.0)

    @property
    def _known(self) -> list[_Host]:
        return [host for host in self._hosts if host.known]

    @property
    def _returned(self) -> bool:
        return len(self._known) >= self._count and all(host.answer is not None for host in self._known)

    def _said(self, word: str) -> list[str]:
        return sorted({name for host in self._known if host.answer for name in host.answer[word]})

    def _hear(self) -> None:
        """Takes connections and answers that have come."""
        with suppress(BlockingIOError, OSError):
            while True:
                connection, _ = self._server.accept()
                connection.setblocking(False)
                self._hosts.append(_Host(connection))
        for host in self._hosts:
            for line in host.lines():
                if host.known:
                    host.answer = json.loads(line)
                elif line.decode(errors="replace") == self._process.token:
                    host.known = True
                    host.send(self._turn.order)

    def _line(self, line: str, read: Callable[[str], Iterable[Any]]) -> Iterable[Any]:
        self._turn.lines += 1
        if line.rstrip("\r").endswith(MARK):
            self._turn.marks += 1
            return ()
        return read(line)

    def _leave(self) -> None:
        for host in self._hosts:
            host.connection.close()
        self._hosts.clear()
        self._server.close()
