"""Following of a running program: rank 0 turns its output into reports and decides when it is over, for all workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainers.details import TRAINED_AGAIN, WARNINGS, WENT_ON_FROM
from trainers.errors import ConfigurationError, JobError
from trainers.gangs import Assignment, Report
from trainers.script.checkpoint_reads import CheckpointWrites
from trainers.script.metric_files import Reported
from trainers.script.metric_lines import Reading
from trainers.script.parts import KeptProcess, Printing, last_words, reason
from trainers.script.peers import Peers
from trainers.script.process import ProgramProcess
from trainers.script.restarts import Past, same
from trainers.script.several_printers import Unread, bar_prints, others_print, twins_print
from trainers.script.units import Counted, Units

Process = ProgramProcess | KeptProcess
"""A worker's part of a program: started for its assignment, or kept loaded."""
POLL_SECONDS = 0.05
"""How often output, ends and peers are looked at."""
QUIET_SECONDS = 0.5
"""How long a folder of checkpoints has to stay as it is, to be taken for written."""
AHEAD = 10_000
"""Reports that a program may be ahead of its rung before it is ended at once."""
AHEAD_SECONDS = 5.0
"""How long a program may go on behind its rung, whose units are shorter than a checkpoint takes to be seen."""
AGAIN_SECONDS = 10.0
"""How often the driver is told of a program that trains units again; it takes a silent one for one that hangs."""
NEAR_UNITS = 3
"""Units around its rung at which a program's checkpoints are looked at after each value."""
OTHERS_SECONDS = 2.0
"""How long other parts may take to say why a program reported nothing."""
TAKEN = ("EADDRINUSE", "Address already in use", "address already in use", "errno: 98", "LightGBMError: Binding port")
"""What a program writes whose port another process has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A worker's part of the program is over.

    Args:
        code: of its launcher, below 0 where a signal ended it.
        tail: its last lines.
        logs: where its output is, as "address:path".
    """

    code: int
    tail: tuple[str, ...]
    logs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prints:
    """A worker whose output does not count prints a metric."""

    metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision of rank 0 that the program is over.

    Args:
        error: why the trial failed; empty where it did not.
        diverged: it failed since its objective is no finite number.
        away: it failed since a disk is full or gone, which is no fault of its own.
        of_job: it failed by a fault of its job, as each trial would.
        again: its port was taken, and it starts once more.
        ended: it ended by itself before its rung, and does not go on.
        holds: it stands at its rung, from which its trial may go on at once.
        logs: where the output of the worker that failed is, as "address:path"; empty for rank 0's.
    """

    error: str = ""
    diverged: bool = False
    away: bool = False
    of_job: bool = False
    again: bool = False
    ended: bool = False
    holds: bool = False
    logs: str = ""


@dataclass(slots=True, kw_only=True)
class Followed:
    """What came of a program's run, on rank 0.

    Args:
        reports: of the assignment, one a unit.
        ahead: those behind its rung, of a program that was quicker than its end; they are the trial's next.
        ended: whether it ended by itself.
        details: what happened beside.
        past: facts by which the units of the trial's next run are counted.
    """

    reports: list[Report] = field(default_factory=list)
    ahead: list[Report] = field(default_factory=list)
    ended: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    past: Past = field(default_factory=Past)

    def warn(self, kind: str, text: str) -> None:
        """Add a warning to the details; a job says one of each kind, behind the name of its trial."""
        self.details.setdefault(WARNINGS, {})[kind] = text


class Follower:
    """Follows a worker's part where rank 0 decides.

    Args:
        peers: of the gang.
        process: its part, where it has one.
        checkpoints: the folder that it writes checkpoints to.
        grace: seconds that it may take to write one.
        unread: has looked at its output.
        logs: where its output is, as "address:path".
    """

    def __init__(
        self, peers: Peers, process: Process | None, checkpoints: Path, grace: float, unread: Unread, logs: str
    ) -> None:
        self._peers, self._process, self._checkpoints, self._grace = peers, process, checkpoints, grace
        self._unread, self._logs = unread, logs

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
        told = told_prints = False
        while True:
            for _, message in self._peers.heard(POLL_SECONDS):
                if isinstance(message, Verdict):
                    return message
            process = None if told else self._process
            code = process.exit_code if process is not None else None
            if process is not None and code is not None:
                process.drain()  # It may have printed the metric in its last words.
            if self._unread.metric and not told_prints:
                self._peers.say(Prints(metric=self._unread.metric))
                told_prints = True
            if process is not None and code is not None:
                self._peers.say(Exit(code=code, tail=tuple(process.tail), logs=self._logs))
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
        writes: of its files.
        awaited: ranks whose parts have to end before the program has ended.
        whole: units after which it ends by itself; None where that is not known.
        timeout: seconds to a report, and to the program's own end behind its last unit.
        grace: seconds that its parts may take to end where they are told to, and to write a checkpoint.
        printing: the readers of rank 0's output.
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
        writes: CheckpointWrites,
        awaited: Sequence[int],
        whole: int | None,
        timeout: float,
        grace: float,
        printing: Printing,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> None:
        self._assignment, self._name = assignment, name
        self._printing = printing
        self._prints: dict[str, str] = {}
        """The metric that other processes print, by their names."""
        self._process, self._peers, self._units, self._file = process, peers, units, reports_file
        self._checkpoints, self._writes, self._awaited = checkpoints, writes, set(awaited)
        self._last, self._ends_at, self._timeout, self._grace = last, whole, timeout, grace
        self._on_report, self._halted = on_report, halted
        self._exits: dict[int, Exit] = {}
        self._reached = last is not None and last.step == assignment.stop
        self._heard = self._spoke = self._told = time.monotonic()
        """When the objective came last, when a new unit did, and when the driver was told of units trained again."""
        self._over = False
        """Whether the process is over, and all that it said was read."""
        self._evaluated = False
        """Whether it has printed the values of its last unit once more."""
        self._checkpointed = False
        """Whether there was a checkpoint at a report before the last."""
        self.followed = Followed()

    def verdict(self) -> Verdict:
        """Follows until the program is over, reaches its rung, fails, or says nothing for too long."""
        verdict = self._decided()
        again, went_on_from = self._units.trained_again(), self._units.position.unit
        if again and went_on_from < self._assignment.start:
            self.followed.details |= {TRAINED_AGAIN: again, WENT_ON_FROM: went_on_from}
        self._warn()
        return verdict

    def _warn(self) -> None:
        """Add the warnings about steps, processes and the length to the details."""
        twins = self._printing.twins
        texts = {
            "units": self._units.guess(),
            "steps": _jump_text(self._units.jump()),
            "other_ranks": self._others_text(),
            "twins": twins_print(twins.line) if twins.line else "",
            "bar": bar_prints(twins.bar) if twins.bar else "",
            "no_number": self._units.without_numbers(),
            "length": self._longer_text() or self._shorter_text(),
        }
        for kind, text in texts.items():
            if text:
                self.followed.warn(kind, text)

    def _others_text(self) -> str:
        printing = self._others()
        return others_print(printing, next(iter(printing.values())), too=True) if printing else ""

    def _longer_text(self) -> str:
        """Return the warning about a program that reported more units than its length; empty for others."""
        further = self.followed.ahead[-1].step if self.followed.ahead else 0
        known = self._units.gives_steps or self._printing.twins.bar
        if not self._ends_at or further <= self._ends_at or known:
            return ""
        return (
            f"the program reported more than the {self._ends_at} units of its length, and was ended there: let it "
            "print the metric once a unit, and its step with it, or give its length in reports"
        )

    def _shorter_text(self) -> str:
        """Return the warning about a program that ended before half of its length; empty for others."""
        length, reported = max(self._ends_at or 0, self._assignment.stop), self._units.reached
        if not self.followed.ended or 2 * reported > length:
            return ""
        return (
            f"the program ended by itself after {reported} of {length} units, and its last values count for the "
            "others: if it reports once in many steps, give its length in reports"
        )

    def _others(self) -> dict[str, str]:
        if metric := self._printing.unread.metric:
            self._prints.setdefault("another process of worker 0", metric)
        return self._prints

    def _decided(self) -> Verdict:
        while True:
            self._look_whether_over()
            if (verdict := self._listen() or self._failed()) is not None:
                return verdict
            if self._reached and not self._will_end:
                return self._paused()
            if self._over:
                return self._ended()
            if time.monotonic() - self._heard > self._patience:
                return self._silent()

    def _look_whether_over(self) -> None:
        if (code := self._process.exit_code) is not None:
            self._process.drain()  # Then its last words are all there.
            self._exits.setdefault(0, Exit(code=code, tail=tuple(self._process.tail)))
            self._over = True

    @property
    def _patience(self) -> float:
        """How long it may be silent: behind its last unit, too, as it saves a model, say, unless the job is to stop."""
        return self._grace if self._reached and self._halted() else self._timeout

    @property
    def _will_end(self) -> bool:
        """Whether it is to end by itself at its rung, which is the trial's last; one that trains on does not.

        One whose steps begin at 0 may have evaluated before its first unit, and so has one unit more than its length.
        """
        if self._assignment.final and self._step == self._assignment.stop:
            return len(self.followed.ahead) <= self._units.from_zero
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
            elif isinstance(message, Prints):
                self._prints[f"worker {rank}"] = message.metric
        return self._read()

    def take_rest(self) -> None:
        """Takes what a program that was paused said until it was ended: its checkpoint may hold those units too."""
        if self._reached:
            self._read()

    def _read(self) -> Verdict | None:
        try:
            for reading in self._readings():
                values = self._units.values
                counted = self._units.take(reading)
                if self._units.values > values:
                    self._heard = time.monotonic()
                    if reading.step is None:
                        self._look_for_writes()
                    self._tell_again(counted)
                for each in counted:
                    if (verdict := self._count(each)) is not None:
                        return verdict
            for each in self._units.rest() if self._over else ():
                if (verdict := self._count(each)) is not None:
                    return verdict
        except ConfigurationError as error:
            return Verdict(error=str(error), of_job=isinstance(error, JobError))
        return None

    def _look_for_writes(self) -> None:
        """Note when a checkpoint file was written last; the units before a pause are those that have to be known."""
        near = abs(self._units.reached - self._assignment.stop) <= NEAR_UNITS
        if (written := self._writes.newest(surely=near)) is not None:
            self._units.times.wrote(written)

    def _count(self, units: Counted) -> Verdict | None:
        """Notes units; those behind its rung are the trial's next."""
        self._spoke = time.monotonic()
        if self._is_evaluation(units):
            self._evaluated = True
            return None
        first = units.first
        while not self._reached and first <= units.last:
            if (verdict := self._note(Report(step=first, metrics=dict(units.metrics)))) is not None:
                return verdict
            first += 1
        if first <= units.last:  # It goes on until it is ended; units between have the values of the last.
            self.followed.ahead.append(Report(step=units.last, metrics=dict(units.metrics)))
        return None

    def _is_evaluation(self, units: Counted) -> bool:
        """Whether a program at its last unit prints that unit's values once more, as it evaluates its final model."""
        last = self.followed.reports[-1] if self.followed.reports else self._last
        if not (self._assignment.final and self._reached and last and not self._evaluated and not self.followed.ahead):
            return False
        return same(units.metrics, last.metrics, self._assignment.objective or next(iter(units.metrics)))

    def _tell_again(self, counted: Sequence[Counted]) -> None:
        """Tells the driver of the trial's last report again while older units are trained again."""
        if not counted and self._last is not None and self._heard - self._told > AGAIN_SECONDS:
            self._told = self._heard
            self._on_report(self._last)

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
        """The verdict where a part failed, also behind the last report: the first that did so says why.

        Nobody has told it to end yet, so that its exit code is its own.
        """
        for rank, part in self._exits.items():
            if part.code and (not self._reached or rank in self._awaited):
                if any(sign in line for line in part.tail for sign in TAKEN) and not self.followed.reports:
                    return Verdict(again=True, error=self._explained(rank, part), logs=part.logs)
                return Verdict(error=self._explained(rank, part), logs=part.logs)
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
        return "\n".join([f"{self._name} ended with {how}{on}{self._before(rank)}{': ' if last else ''}{last}", *words])

    def _before(self, rank: int) -> str:
        """Names the workers whose parts had ended well before one failed: it may have waited for them."""
        ended = [str(other) for other, part in sorted(self._exits.items()) if other != rank and not part.code]
        if not ended:
            return ""
        several = "s" if len(ended) > 1 else ""
        return f", when worker{several} {' and '.join(ended)} had ended by {'themselves' if several else 'itself'}"

    def _ended(self) -> Verdict:
        """It ended by itself: its other parts have a while to end, too."""
        if not self.followed.reports and self._last is None:
            if (verdict := self._await_others(min(self._grace, OTHERS_SECONDS))) is not None:
                return verdict
            said = f"{self._name} ended with exit code 0 and reported nothing new: {self._missing()}"
            return Verdict(error="\n".join([said, *last_words(self._process.tail)]))
        if (verdict := self._await_others(self._grace)) is not None:
            return verdict
        if late := sorted(self._awaited - set(self._exits)):
            self.followed.details["ended_late"] = late
        self.followed.ended = True
        return Verdict(ended=not self._reached)

    def _await_others(self, seconds: float) -> Verdict | None:
        """Waits for the ends of the other parts; the verdict where one of them fails."""
        deadline = time.monotonic() + seconds
        while self._awaited - set(self._exits) and time.monotonic() < deadline:
            if (verdict := self._listen() or self._failed()) is not None:
                return verdict
        return None

    def _paused(self) -> Verdict:
        """It has come to its rung: it may write its checkpoint, and is then ended, or has ended its turn itself."""
        at_rung = self._step == self._assignment.stop
        if self._process.stays and at_rung:
            self._await_return()
        elif self._checkpointed or len(self.followed.reports) + self._assignment.start <= 1:
            self._await_checkpoint()
        self._look_whether_over()
        if (verdict := self._failed()) is not None:
            return verdict
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
        printing = self._others()
        others = others_print(printing, next(iter(printing.values()))) if printing else ""
        said = (
            f"{expected} was to come, by the Regex of metric_definitions in a line of its output, in metric_files, or "
            "by warmband.report"
        )
        explained = "; ".join(filter(None, (self._units.explanation(), others)))
        return explained or ": ".join(filter(None, (self._file.missing(), said)))

    def _silent(self) -> Verdict:
        if self._reached:
            return Verdict()  # It has had all that time to write its checkpoint.
        waits = f"{self._name} reported nothing for {self._timeout:.0f} s"
        ended = [str(rank) for rank in sorted(self._exits)]
        others = f"; worker {', '.join(ended)} had ended" if ended else ""
        said = f"{waits}{others}: {self._missing()}; give a larger report_timeout_s if it is as slow as that"
        return Verdict(error="\n".join([said, *last_words(self._process.tail)]))


def _jump_text(counter: str) -> str:
    """Return the warning about steps that begin late or jump; empty without a counter for them."""
    if not counter:
        return ""
    return (
        "the program's steps begin above 1, or jump: units before its first step, or between two steps, have the "
        f"values of the later one; say which steps are units: {counter}"
    )


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
