"""Following of a running program: rank 0 turns its output into reports and decides when it is over, for all workers."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainers.errors import ConfigurationError
from trainers.gangs import Assignment, Report
from trainers.script.metric_lines import Reading, Units, read_json
from trainers.script.peers import Peers
from trainers.script.process import ProgramProcess

POLL_SECONDS = 0.05
"""How often output, ends and peers are looked at."""
QUIET_SECONDS = 0.3
"""How long a folder of checkpoints has to stay as it is, to be taken for written."""
AHEAD_SECONDS = 5.0
"""How long a program may go on behind its rung, whose units are shorter than a checkpoint takes to be seen."""
TAKEN = ("EADDRINUSE", "Address already in use", "address already in use", "errno: 98")
"""What a program writes whose port another process has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A worker's part of the program is over.

    Args:
        code: of its launcher, below 0 where a signal ended it.
        tail: its last lines.
    """

    code: int
    tail: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision of rank 0 that the program is over.

    Args:
        error: why the trial failed; empty where it did not.
        diverged: it failed since its objective is no finite number.
        again: its port was taken, and it starts once more.
        ended: it ended by itself, and does not go on.
    """

    error: str = ""
    diverged: bool = False
    again: bool = False
    ended: bool = False


@dataclass(slots=True, kw_only=True)
class Followed:
    """What came of a program's run, on rank 0.

    Args:
        reports: of the assignment, one a unit.
        ahead: those behind its rung, of a program that was quicker than its end; they are the trial's next.
        ended: whether it ended by itself.
        details: what happened beside.
    """

    reports: list[Report] = field(default_factory=list)
    ahead: list[Report] = field(default_factory=list)
    ended: bool = False
    details: dict[str, Any] = field(default_factory=dict)


class ReportsFile:
    """The file that a program appends JSON lines to, read as it grows.

    Args:
        path: where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._lines = path, 0, 0

    def new(self) -> Iterator[Reading]:
        """Readings of the whole lines that are new.

        Raises:
            ConfigurationError: a line is no JSON object.
        """
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._at)
            whole, newline, _ = file.read().rpartition(b"\n")
            self._at += len(whole) + len(newline)
            for line in whole.split(b"\n") if newline else ():
                self._lines += 1
                reading = read_json(line.decode("utf-8", "replace"), self._path.name, self._lines)
                if reading is not None:
                    yield reading


class Follower:
    """Follows a worker's part where rank 0 decides.

    Args:
        peers: of the gang.
        process: its part, where it has one.
    """

    def __init__(self, peers: Peers, process: ProgramProcess | None) -> None:
        self._peers, self._process = peers, process

    def verdict(self) -> Verdict:
        """Tells rank 0 of its end, and waits for what rank 0 decides."""
        told = False
        while True:
            for _, message in self._peers.heard(POLL_SECONDS):
                if isinstance(message, Verdict):
                    return message
            if not told and self._process is not None and (code := self._process.exit_code) is not None:
                self._process.drain()
                self._peers.say(Exit(code=code, tail=tuple(self._process.tail)))
                told = True


class Leader:
    """Follows the program on rank 0.

    Args:
        assignment: that it serves.
        name: of the program, for messages.
        process: rank 0's part.
        peers: of the gang.
        units: turn readings into reports.
        known: units of the assignment that were there before it started.
        reports_file: where the program may report to.
        checkpoints: the folder that it writes checkpoints to.
        awaited: ranks whose parts have to end before the program has ended.
        whole: units after which it ends by itself; None where that is not known.
        timeout: seconds to a report.
        grace: seconds that its parts may take to end, and to write a checkpoint.
        on_report: is told of reports.
        halted: see `Program.train`.
    """

    def __init__(
        self,
        assignment: Assignment,
        *,
        name: str,
        process: ProgramProcess,
        peers: Peers,
        units: Units,
        known: int,
        reports_file: ReportsFile,
        checkpoints: Path,
        awaited: Sequence[int],
        whole: int | None,
        timeout: float,
        grace: float,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> None:
        self._assignment, self._name = assignment, name
        self._process, self._peers, self._units, self._file = process, peers, units, reports_file
        self._checkpoints, self._awaited = checkpoints, set(awaited)
        self._known, self._ends_at, self._timeout, self._grace = known, whole, timeout, grace
        self._on_report, self._halted = on_report, halted
        self._exits: dict[int, Exit] = {}
        self._reached = False
        self._spoke = time.monotonic()
        self._checkpointed = False
        """Whether there was a checkpoint at a report before the last."""
        self.followed = Followed()

    def verdict(self) -> Verdict:
        """Follows until the program is over, reaches its rung, fails, or says nothing for too long."""
        verdict = self._decided()
        if self._units.repeated:
            self.followed.details["units_trained_again"] = self._units.repeated
        return verdict

    def _decided(self) -> Verdict:
        while True:
            over = self._process.exit_code is not None
            if over:
                self._process.drain()
            if (verdict := self._listen()) is not None:
                return verdict
            if self._reached and not self._will_end:
                return self._paused()
            if (verdict := self._failed()) is not None:
                return verdict
            if over:
                return self._ended()
            if time.monotonic() - self._spoke > (self._grace if self._reached else self._timeout):
                return self._silent()

    @property
    def _will_end(self) -> bool:
        """Whether it is to end by itself at its rung, which is the trial's last."""
        reports = self.followed.reports
        return self._ends_at is not None and bool(reports) and reports[-1].step >= self._ends_at

    def _listen(self) -> Verdict | None:
        """Takes what is new; the verdict where it is one."""
        for rank, message in self._peers.heard(POLL_SECONDS):
            if isinstance(message, Exit):
                self._exits[rank] = message
        try:
            for reading in self._readings():
                for report in self._units.take(reading):
                    if (verdict := self._note(report)) is not None:
                        return verdict
        except ConfigurationError as error:
            return Verdict(error=str(error))
        return None

    def _readings(self) -> Iterator[Reading]:
        while not self._process.readings.empty():
            reading = self._process.readings.get()
            if isinstance(reading, ConfigurationError):
                raise reading
            yield reading
        yield from self._file.new()

    def _note(self, report: Report) -> Verdict | None:
        self._spoke = time.monotonic()
        if self._reached:  # It goes on until it is ended.
            self.followed.ahead.append(report)
            return None
        self._checkpointed = any(self._checkpoints.iterdir())
        self.followed.reports.append(report)
        self._on_report(report)
        if said := self._assignment.divergence(report):
            return Verdict(error=said, diverged=True)
        self._reached = report.step == self._assignment.stop or self._halted()
        return None

    def _failed(self) -> Verdict | None:
        """The verdict where a part failed: the first that did so says why."""
        if (code := self._process.exit_code) is not None:
            self._exits.setdefault(0, Exit(code=code, tail=tuple(self._process.tail)))
        for rank, part in self._exits.items():
            if part.code and not self._reached:
                if any(sign in line for line in part.tail for sign in TAKEN) and not self.followed.reports:
                    return Verdict(again=True, error=self._explained(rank, part))
                return Verdict(error=self._explained(rank, part))
        return None

    def _explained(self, rank: int, part: Exit) -> str:
        how = f"exit code {part.code}"
        if part.code < 0:
            with suppress(ValueError):
                how = f"signal {signal.Signals(-part.code).name}"
            how += ", as where memory ends" if part.code == -signal.SIGKILL else ""
        on = f" on worker {rank}" if self._peers.world_size > 1 else ""
        last = _telling(part.tail)
        return "\n".join([f"{self._name} ended with {how}{on}{': ' if last else ''}{last}", *part.tail])

    def _ended(self) -> Verdict:
        """It ended by itself: its other parts have a while to end, too."""
        if not self.followed.reports and not self._known:
            said = f"{self._name} ended with exit code 0 and reported nothing new: {self._missing()}"
            return Verdict(error="\n".join([said, *self._process.tail]))
        deadline = time.monotonic() + self._grace
        while self._awaited - set(self._exits) and time.monotonic() < deadline:
            if (verdict := self._listen() or self._failed()) is not None:
                return verdict
        if late := sorted(self._awaited - set(self._exits)):
            self.followed.details["ended_late"] = late
        self.followed.ended = True
        return Verdict(ended=True)

    def _paused(self) -> Verdict:
        """It has come to its rung: it may write its checkpoint, and is then ended."""
        if self._checkpointed or len(self.followed.reports) + self._assignment.start <= 1:
            self._await_checkpoint()
        return Verdict()

    def _await_checkpoint(self) -> None:
        """Waits until the checkpoint of the last report is written: the folder changes, and then stays as it is."""
        began = time.monotonic()
        before, spoke, changed = _look(self._checkpoints), self._spoke, 0.0
        while self._process.exit_code is None:
            self._listen()
            now, time_now = _look(self._checkpoints), time.monotonic()
            if self._spoke != spoke:
                if not changed and now == before:
                    return  # It writes none for each unit.
                spoke, changed = self._spoke, 0.0
            if now != before:
                before, changed = now, time_now
            elif changed and time_now - changed > QUIET_SECONDS:
                return
            if time_now - began > (AHEAD_SECONDS if self.followed.ahead else self._grace):
                return
        self._process.drain()
        self._listen()
        self.followed.ended = self._process.exit_code == 0

    def _missing(self) -> str:
        """What would have been a report."""
        if self._units.repeated:
            return f"its {self._units.repeated} units were those that the trial had, up to {self._units.start}"
        objective = self._assignment.objective
        expected = f"a value of {objective!r}" if objective else "a value of any metric"
        return self._units.explanation() or (
            f"{expected} was to come, by the Regex of metric_definitions in a line of its output, or by warmband.report"
        )

    def _silent(self) -> Verdict:
        if self._reached:
            return self._paused()
        waits = f"{self._name} reported nothing for {self._timeout:.0f} s"
        ended = [str(rank) for rank in sorted(self._exits)]
        others = f"; worker {', '.join(ended)} had ended" if ended else ""
        said = f"{waits}{others}: {self._missing()}; give a larger report_timeout_s if it is as slow as that"
        return Verdict(error="\n".join([said, *self._process.tail]))


def _look(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            facts = path.stat()
            found[str(path)] = (facts.st_size, facts.st_mtime_ns)
    return found


def _telling(tail: Sequence[str]) -> str:
    """The line that says most: the last with an exception's name in front, or the last."""
    errors = [line.strip() for line in tail if line.strip().partition(":")[0].endswith(("Error", "Exception"))]
    return (errors or [line.strip() for line in tail] or [""])[-1]
