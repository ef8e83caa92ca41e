"""Following of a running program: rank 0 turns its output into reports and decides when it is over, for all workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainers.errors import ConfigurationError
from trainers.gangs import Assignment, Report
from trainers.script.metric_files import Reported
from trainers.script.metric_lines import Reading, Units
from trainers.script.parts import KeptProcess, last_words, reason
from trainers.script.peers import Peers
from trainers.script.process import ProgramProcess

Process = ProgramProcess | KeptProcess
"""A worker's part of a program: started for its assignment, or kept loaded."""
POLL_SECONDS = 0.05
"""How often output, ends and peers are looked at."""
QUIET_SECONDS = 0.3
"""How long a folder of checkpoints has to stay as it is, to be taken for written."""
AHEAD = 10_000
"""Reports that a program may be ahead of its rung before it is ended at once."""
AHEAD_SECONDS = 5.0
"""How long a program may go on behind its rung, whose units are shorter than a checkpoint takes to be seen."""
TAKEN = ("EADDRINUSE", "Address already in use", "address already in use", "errno: 98", "LightGBMError: Binding port")
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
        away: it failed since a disk is full or gone, which is no fault of its own.
        again: its port was taken, and it starts once more.
        ended: it ended by itself before its rung, and does not go on.
        holds: it stands at its rung, from which its trial may go on at once.
    """

    error: str = ""
    diverged: bool = False
    away: bool = False
    again: bool = False
    ended: bool = False
    holds: bool = False


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


class Follower:
    """Follows a worker's part where rank 0 decides.

    Args:
        peers: of the gang.
        process: its part, where it has one.
        checkpoints: the folder that it writes checkpoints to.
        grace: seconds that it may take to write one.
    """

    def __init__(self, peers: Peers, process: Process | None, checkpoints: Path, grace: float) -> None:
        self._peers, self._process, self._checkpoints, self._grace = peers, process, checkpoints, grace

    def verdict(self) -> Verdict:
        """Tells rank 0 of its end, and waits for what rank 0 decides, and for a checkpoint that is being written.

        A part that stays has come to its own end then, or does so soon.
        """
        verdict = self._heard()
        deadline = time.monotonic() + (0.0 if verdict.error else self._grace)
        while self._process is not None and time.monotonic() < deadline:
            if not (_turns(self._process) if self._process.stays else self._process.writes_in(self._checkpoints)):
                break
            time.sleep(POLL_SECONDS)
        return verdict

    def _heard(self) -> Verdict:
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
        last: the trial's report before, whose values count on where it has nothing left to train; one of the rung is
            that of a program that was ahead of it.
        reports_file: where the program may report to, and its own files of metrics.
        checkpoints: the folder that it writes checkpoints to.
        awaited: ranks whose parts have to end before the program has ended.
        whole: units after which it ends by itself; None where that is not known.
        timeout: seconds to a report, and to the program's own end behind its last unit.
        grace: seconds that its parts may take to end where they are told to, and to write a checkpoint.
        on_report: is told of reports.
        halted: see `Program.train`.
    """

    def __init__(
        self,
        assignment: Assignment,
        *,
        name: str,
        process: Process,
        peers: Peers,
        units: Units,
        last: Report | None,
        reports_file: Reported,
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
        self._last, self._ends_at, self._timeout, self._grace = last, whole, timeout, grace
        self._on_report, self._halted = on_report, halted
        self._exits: dict[int, Exit] = {}
        self._reached = last is not None and last.step == assignment.stop
        self._spoke = time.monotonic()
        self._checkpointed = False
        """Whether there was a checkpoint at a report before the last."""
        self.followed = Followed()

    def verdict(self) -> Verdict:
        """Follows until the program is over, reaches its rung, fails, or says nothing for too long."""
        verdict = self._decided()
        if self._units.repeated:
            self.followed.details["units_trained_again"] = self._units.repeated
            self._units.repeated = 0  # It counts on where the program does.
        return verdict

    def _decided(self) -> Verdict:
        while True:
            over = (code := self._process.exit_code) is not None
            if code is not None:
                self._process.drain()  # Then its last words are all there.
                self._exits.setdefault(0, Exit(code=code, tail=tuple(self._process.tail)))
            if (verdict := self._listen()) is not None:
                return verdict
            if self._reached and not self._will_end:
                return self._paused()
            if (verdict := self._failed()) is not None:
                return verdict
            if over:
                return self._ended()
            if time.monotonic() - self._spoke > self._patience:
                return self._silent()

    @property
    def _patience(self) -> float:
        """How long it may be silent: behind its last unit, too, as it saves a model, say, unless the job is to stop."""
        return self._grace if self._reached and self._halted() else self._timeout

    @property
    def _will_end(self) -> bool:
        """Whether it is to end by itself at its rung, which is the trial's last; one that trains on does not."""
        return not self.followed.ahead and self._ends_at is not None and self._step >= self._ends_at

    @property
    def _step(self) -> int:
        """The trial's last unit, no further than its rung."""
        last = self.followed.reports[-1] if self.followed.reports else self._last
        return last.step if last is not None else 0

    def _listen(self) -> Verdict | None:
        """Takes what is new; the verdict where it is one."""
        for rank, message in self._peers.heard(POLL_SECONDS):
            if isinstance(message, Exit):
                self._exits[rank] = message
        return self._read()

    def take_rest(self) -> None:
        """Takes what a program that was paused said until it was ended: its checkpoint may hold those units too."""
        if self._reached:
            self._read()

    def _read(self) -> Verdict | None:
        try:
            for reading in self._readings():
                for report in self._units.take(reading):
                    self._spoke = time.monotonic()
                    if self._reached:  # It goes on until it is ended; units between have the values of the last.
                        self.followed.ahead.append(replace(report, step=self._units.reached))
                        break
                    if (verdict := self._note(report)) is not None:
                        return verdict
        except ConfigurationError as error:
            return Verdict(error=str(error))
        return None

    def _readings(self) -> Iterator[Reading]:
        for _ in range(self._process.readings.qsize()):  # More may come as quickly as they are taken.
            reading = self._process.readings.get()
            if isinstance(reading, ConfigurationError):
                raise reading
            yield reading
        yield from self._file.new(over=self._process.exit_code == 0)

    def _note(self, report: Report) -> Verdict | None:
        self._checkpointed = _holds_any(self._checkpoints)
        self.followed.reports.append(report)
        self._on_report(report)
        if said := self._assignment.divergence(report):
            return Verdict(error=said, diverged=True)
        self._reached = report.step == self._assignment.stop or self._halted()
        return None

    def _failed(self) -> Verdict | None:
        """The verdict where a part failed: the first that did so says why."""
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
        words = last_words(part.tail)
        last = reason(words)
        return "\n".join([f"{self._name} ended with {how}{on}{': ' if last else ''}{last}", *words])

    def _ended(self) -> Verdict:
        """It ended by itself: its other parts have a while to end, too."""
        if not self.followed.reports and self._last is None:
            said = f"{self._name} ended with exit code 0 and reported nothing new: {self._missing()}"
            return Verdict(error="\n".join([said, *last_words(self._process.tail)]))
        deadline = time.monotonic() + self._grace
        while self._awaited - set(self._exits) and time.monotonic() < deadline:
            if (verdict := self._listen() or self._failed()) is not None:
                return verdict
        if late := sorted(self._awaited - set(self._exits)):
            self.followed.details["ended_late"] = late
        self.followed.ended = True
        return Verdict(ended=not self._reached)

    def _paused(self) -> Verdict:
        """It has come to its rung: it may write its checkpoint, and is then ended, or has ended its turn itself."""
        at_rung = self._step == self._assignment.stop
        if self._process.stays and at_rung:
            self._await_return()
        elif self._checkpointed or len(self.followed.reports) + self._assignment.start <= 1:
            self._await_checkpoint()
        goes_on = self._assignment.goes_on and at_rung and not self._halted()
        return Verdict(holds=goes_on and not self._process.stays and self._process.exit_code is None)

    def _await_return(self) -> None:
        """Waits until a program that stays has come to its end: it knows of the rung."""
        deadline = time.monotonic() + self._grace
        while _turns(self._process) and time.monotonic() < deadline:
            self._listen()
        self._process.drain()
        self._listen()

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
            elif changed and time_now - changed > QUIET_SECONDS and not self._process.writes_in(self._checkpoints):
                return
            ahead = len(self.followed.ahead)
            if ahead >= AHEAD or time_now - began > (AHEAD_SECONDS if ahead else self._grace):
                return
        self._process.drain()
        self._listen()
        self.followed.ended = self._process.exit_code == 0

    def _missing(self) -> str:
        """What would have been a report."""
        objective = self._assignment.objective
        expected = f"a value of {objective!r}" if objective else "a value of any metric"
        said = (
            f"{expected} was to come, by the Regex of metric_definitions in a line of its output, in metric_files, or "
            "by warmband.report"
        )
        return self._units.explanation() or ": ".join(filter(None, (self._file.missing(), said)))

    def _silent(self) -> Verdict:
        if self._reached:
            return Verdict()  # It has had all that time to write its checkpoint.
        waits = f"{self._name} reported nothing for {self._timeout:.0f} s"
        ended = [str(rank) for rank in sorted(self._exits)]
        others = f"; worker {', '.join(ended)} had ended" if ended else ""
        said = f"{waits}{others}: {self._missing()}; give a larger report_timeout_s if it is as slow as that"
        return Verdict(error="\n".join([said, *last_words(self._process.tail)]))


def _turns(process: Process) -> bool:
    """Whether a trial's turn goes on."""
    return process.exit_code is None


def _holds_any(folder: Path) -> bool:
    with suppress(OSError), os.scandir(folder) as found:
        return next(found, None) is not None
    return False


def _look(folder: Path) -> dict[str, tuple[int, int]]:
    """Files of a folder with their sizes and times; a program removes some meanwhile, or the folder itself."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            with suppress(OSError):
                facts = os.stat(path)
                found[path] = (facts.st_size, facts.st_mtime_ns)
    return found
