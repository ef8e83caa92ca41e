"""Signs that a metric comes more than once a unit: of several processes, of which one counts, or of a progress bar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from trainers.errors import ConfigurationError
from trainers.script.metric_lines import Reading

Read = Callable[[str], Iterable[Reading]]
"""Gives the readings of a line of output."""

MASKED_PAIRS, EXACT_PAIRS = 2, 3
"""How often a line has to come twice in a row, with other values or with the same."""
LINES = 200
"""Lines with the metric that are compared; what several processes print shows early."""
SHOWN = 100
"""Characters of a line in a warning."""
_DECIMAL = re.compile(r"\d+\.\d+(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_PRINTER = re.compile(r"^[\W\d_]+|\b(?:rank|process|proc|pid|worker|gpu|cuda|device)\W{0,3}\d+", re.IGNORECASE)
"""What a line says of the process that prints it: a number or a time at its head, or "[rank1]"."""


class Unread:
    """The output of a process that does not count, searched for the metric until it was found once.

    Args:
        read: gives the readings of a line.
        objective: the metric; empty for any.
    """

    def __init__(self, read: Read, objective: str) -> None:
        self._read, self._objective = read, objective
        self.metric = ""
        """The metric that was found; empty as long as none was."""

    def __call__(self, line: str) -> tuple[()]:
        """Look at a line; none of its readings counts."""
        if not self.metric:
            with suppress(ConfigurationError):  # Only the output that counts has to be right.
                for reading in self._read(line):
                    self.metric = self.metric or _metric(reading, self._objective)
        return ()


@dataclass(slots=True)
class _Repeats:
    """Lines that come once and lines that come twice in a row."""

    last: str = ""
    length: int = 0
    pairs: int = 0
    singles: int = 0
    distinct: int = 0
    """How often the line was another one than before."""

    def take(self, line: str) -> None:
        if line == self.last:
            self.length += 1
            self.pairs += self.length == 2
            return
        self.singles += self.length == 1
        self.distinct += 1
        self.last, self.length = line, 1


class Twins:
    """A watch for values of the metric that come more than once a unit, so that each counts as one.

    Several processes print a line twice into one stream, or one with two handlers of its logger; a progress bar prints
    its line again and again behind carriage returns. A line that gives its step is counted right, however often it
    comes.

    Args:
        read: gives the readings of a line.
        objective: the metric; empty for any.
    """

    def __init__(self, read: Read, objective: str) -> None:
        self._read, self._objective = read, objective
        self._lines = 0
        self._masked, self._exact = _Repeats(), _Repeats()
        self.line = ""
        """One of the lines that came twice; empty as long as none did."""
        self.bar = ""
        """The end of a line that has the metric several times, between carriage returns; empty as long as none had."""

    def __call__(self, line: str) -> Iterator[Reading]:
        """Give the readings of a line, and compare it with those before."""
        count = 0
        for reading in self._read(line):
            count += reading.step is None and bool(_metric(reading, self._objective))
            yield reading
        if count:
            self._compare(line)
        if count > 1 and not self.bar:
            self.bar = line.rstrip().rpartition("\r")[2].strip()[:SHOWN]

    def _compare(self, line: str) -> None:
        self._lines += 1
        if self.line or self._lines > LINES:
            return
        masked = _DECIMAL.sub("#", _PRINTER.sub("", line))
        self._masked.take(masked)
        self._exact.take(line)
        counted = self._masked.distinct > 1  # The line counts epochs or steps itself.
        if counted:
            found = self._masked.pairs >= MASKED_PAIRS and self._masked.pairs > self._masked.singles
        else:
            found = self._exact.pairs >= EXACT_PAIRS and not self._exact.singles
        if found:
            self.line = line.strip()[:SHOWN]


def _metric(reading: Reading, objective: str) -> str:
    """Return the metric that a reading has, or would have if its text were a number; empty for none."""
    names = [*reading.metrics, *reading.refused]
    if objective:
        return objective if objective in names else ""
    return next(iter(names), "")


def others_print(who: Iterable[str], metric: str, *, too: bool = False) -> str:
    """Return a sentence about processes that print a metric in place of rank 0, or beside it."""
    names = list(who)
    verb = f"{'prints' if len(names) == 1 else 'print'} {metric!r}{' too' if too else ''}"
    return (
        f"{' and '.join(names)} {verb}, and only rank 0's output counts; let rank 0 alone print it, with the value of "
        "all ranks"
    )


def twins_print(line: str) -> str:
    """Return the warning about lines that come twice."""
    return (
        f"lines with the metric come twice in a row, such as {line!r}, as of several processes, and each counts as a "
        "unit; let one process print it, or let its regular expression have a group 'step', as in "
        r"'epoch=(?P<step>\d+) acc=(?P<value>\S+)'"
    )


def bar_prints(line: str) -> str:
    """Return the warning about a line that has the metric several times."""
    return (
        f"the metric comes several times in one line, at last {line!r}, as of a progress bar, and each time counts as "
        "a unit; let the program print it once a unit, in a line of its own; or, if the bar counts units, let the "
        r"regular expression have a group 'step', as in '(?P<step>\d+)/\d+ .*acc=(?P<value>[-+.\deE]+)'"
    )
