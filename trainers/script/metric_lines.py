"""Metrics of a program: from lines of its output by regular expressions, and from JSON lines of a file."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainers.checking import did_you_mean, is_number, is_whole
from trainers.errors import ConfigurationError
from trainers.gangs import Report

LONGEST = 10_000
"""Bytes of a line; behind them it goes on as another: an expression may take the square of a line's length."""

STEP, _VALUE = "step", "value"
_KEYS = ("Name", "Regex")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Colours, movements of the cursor and titles, as terminals take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a line says.

    Args:
        metrics: values by names.
        step: the unit that they are of, if the line says so.
        refused: texts that stood in the place of a number, by names.
    """

    metrics: dict[str, float]
    step: int | None = None
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Definition:
    name: str
    pattern: re.Pattern[str]
    group: int | str

    def found(self, part: str) -> re.Match[str] | None:
        """The first match in a part of a line; one that begins with `.*` is there from the beginning, or nowhere."""
        whole = self.pattern.pattern
        return self.pattern.match(part) if whole.startswith(".*") and "|" not in whole else self.pattern.search(part)


def check_definitions(definitions: object) -> None:
    """Refuses metric definitions that are not as SageMaker has them.

    Args:
        definitions: `[{"Name": "validation:accuracy", "Regex": "acc=([0-9.]+)"}]`, or None.

    Raises:
        ConfigurationError: naming the one that is wrong, and what to give.
    """
    _compiled(definitions)


def _compiled(definitions: object) -> tuple[_Definition, ...]:
    if definitions is None:
        return ()
    if not isinstance(definitions, Sequence) or isinstance(definitions, str | bytes):
        raise ConfigurationError(f"metric_definitions is {definitions!r}; give a list of {{'Name': ..., 'Regex': ...}}")
    compiled = tuple(_definition(f"metric_definitions[{place}]", each) for place, each in enumerate(definitions))
    names = [each.name for each in compiled]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ConfigurationError(
                f"metric_definitions[{place}] has the name {name!r} of metric_definitions[{names.index(name)}]; give "
                "each metric one definition, whose regular expression may have alternatives"
            )
    return compiled


def _definition(what: str, given: object) -> _Definition:
    if not isinstance(given, Mapping) or not all(isinstance(given.get(key), str) and given[key] for key in _KEYS):
        raise ConfigurationError(f"{what} is {given!r}; give {{'Name': ..., 'Regex': ...}}, both strings, not empty")
    for key in given:
        if key not in _KEYS:
            raise ConfigurationError(
                f"{what} has the key {key!r}; give 'Name' and 'Regex' alone{did_you_mean(key, _KEYS)}"
            )
    name, regex = given["Name"], given["Regex"]
    if name == STEP:
        raise ConfigurationError(f"{what} has the name {STEP!r}, which stands for the unit; give another")
    try:
        pattern = re.compile(regex)
    except re.error as error:
        raise ConfigurationError(
            f"{what}: the regular expression {regex!r} of {name!r} is none: {error}; give one as Python's re takes it"
        ) from None
    return _Definition(name, pattern, _group(what, name, pattern))


def _group(what: str, name: str, pattern: re.Pattern[str]) -> int | str:
    """The group that is the value: a named one, or the only one but `step`."""
    if _VALUE in pattern.groupindex:
        return _VALUE
    others = [group for group in range(1, pattern.groups + 1) if group != pattern.groupindex.get(STEP)]
    if len(others) != 1:
        raise ConfigurationError(
            f"{what}: the regular expression {pattern.pattern!r} of {name!r} has {len(others)} groups; give one around "
            "the number, as in 'acc=([0-9.]+)', or name it, as in '(?P<value>[0-9.]+)', and write others (?:...)"
        )
    return others[0]


class MetricDefinitions:
    """Regular expressions that find metrics in lines of output, as SageMaker's.

    Args:
        definitions: `[{"Name": "validation:accuracy", "Regex": "acc=([0-9.]+)"}]`; None or empty for none. The number
            is the one group, or the one named `value`; a group named `step` is the unit that it is of.
        objective: the metric whose definition's step counts, where several have one.

    Raises:
        ConfigurationError: a definition is wrong.
    """

    def __init__(self, definitions: object, objective: str = "") -> None:
        compiled = _compiled(definitions)
        # The first step that is found counts.
        self._definitions = sorted(compiled, key=lambda each: each.name != objective)
        self.names = tuple(each.name for each in compiled)

    def read(self, line: str) -> Iterator[Reading]:
        """What a line says, for each of its parts between carriage returns that says something, as progress bars write.

        Args:
            line: of output, with or without its end.

        Raises:
            ConfigurationError: a group `step` matched what is no unit.
        """
        for part in _ESCAPES.sub("", line).replace("\n", "\r").split("\r"):
            reading = self._read(part) if part else None
            if reading:
                yield reading

    def _read(self, part: str) -> Reading | None:
        metrics: dict[str, float] = {}
        refused: dict[str, str] = {}
        step: int | None = None
        for each in self._definitions:
            match = each.found(part)
            text = match[each.group] if match else None
            if match is None or text is None:
                continue
            value = _number(text)
            if value is None:
                refused[each.name] = text
                continue
            metrics[each.name] = value
            if step is None and match.groupdict().get(STEP) is not None:
                step = _step(_number(match[STEP]), match[STEP], f"the regular expression of {each.name!r}")
        return Reading(metrics=metrics, step=step, refused=refused) if metrics or refused else None


def _number(text: str) -> float | None:
    # `[0-9.]+` takes the full stop of a sentence too.
    for each in (text, text.rstrip(".,")):
        try:
            return float(each)
        except ValueError:
            continue
    return None


def _step(number: Any, shown: object, source: str) -> int:
    whole = int(number) if isinstance(number, float) and number.is_integer() else number
    if not is_whole(whole, 1):
        raise ConfigurationError(f"{source} gives step {shown!r}; give whole numbers from 1 on, one a unit")
    return whole


def _whole(digits: str) -> int | float:
    """A whole number, or infinity for one that no float can hold."""
    return int(digits) if is_number(float(digits)) else float(digits)


def read_json(line: str, file: str, number: int) -> Reading | None:
    """What a line of a file of JSON objects says; None of an empty line.

    Args:
        line: a whole one, such as `{"validation:accuracy": 0.9, "step": 3}`.
        file: its file, for the error.
        number: of the line, from 1, for the error.

    Raises:
        ConfigurationError: it is no JSON object, or its step is no unit.
    """
    if not line.strip():
        return None
    try:
        found = json.loads(line, parse_int=_whole)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        shown = line.strip() if len(line) <= 100 else f"{line[:100].strip()}..."
        raise ConfigurationError(
            f"line {number} of {file} is {shown!r}; write one JSON object a line, such as "
            '{"validation:accuracy": 0.9, "step": 3}'
        )
    step = found.pop(STEP, None)
    numbers = {key: value for key, value in found.items() if not isinstance(value, bool)}
    return Reading(
        metrics={key: float(value) for key, value in numbers.items() if isinstance(value, int | float)},
        step=None if step is None else _step(step, step, f"line {number} of {file}"),
        refused={key: json.dumps(value) for key, value in numbers.items() if not isinstance(value, int | float)},
    )


class ReportsFile:
    """The file that a program appends JSON lines to, read as it grows, and anew where it was written anew.

    Args:
        path: where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._lines = path, 0, 0
        self._rest = b""

    def new(self, *, over: bool = False) -> Iterator[Reading]:
        """Readings of the whole lines that are new.

        Args:
            over: nothing follows, so that the last line needs no end.

        Raises:
            ConfigurationError: a line is no JSON object, or the file is none.
        """
        whole = (self._rest + self._more()).split(b"\n")
        self._rest = b"" if over else whole.pop()
        for line in whole:
            self._lines += 1
            reading = read_json(line.decode("utf-8", "replace"), self._path.name, self._lines)
            if reading is not None:
                yield reading

    def _more(self) -> bytes:
        try:
            facts = self._path.stat()
        except FileNotFoundError:
            return b""
        if not stat.S_ISREG(facts.st_mode):  # To open a pipe would be to wait for its other end.
            raise ConfigurationError(f"{self._path.name}, which WARMBAND_REPORTS names, is no file; append lines to it")
        if facts.st_size < self._at:
            self._at, self._lines, self._rest = 0, 0, b""
        if facts.st_size == self._at:
            return b""
        with self._path.open("rb") as file:
            file.seek(self._at)
            more = file.read()
        self._at += len(more)
        return more


class Units:
    """Counts units of resource in what a program says, and makes their reports.

    A value of the objective is one unit, and other metrics have their latest values. The unit is the next one, or the
    one whose step the line says: a step further on fills those between with the same values, and one that was there is
    ignored.

    Args:
        objective: the metric that marks a unit; empty for the one that is read first.
        start: units that the trial has; they are not reported again.
        resumed: the program goes on from its checkpoint, so that its first unit is `start` + 1. Without, it begins
            again at 1. A line that says its step is taken at its word.
    """

    def __init__(self, objective: str, start: int = 0, *, resumed: bool = False) -> None:
        self.start = start
        self.repeated = 0
        """Units that were trained again, since the program began again."""
        self.reached = start
        """The unit reported last."""
        self.refused: dict[str, tuple[int, str]] = {}
        """How often a metric was no number, and the text that stood there last."""
        self._objective = objective
        self._seen = start if resumed else 0
        self._latest: dict[str, float] = {}

    def take(self, reading: Reading) -> Iterator[Report]:
        """The reports of the units that a reading ends: none, one, or more where it goes further on by steps.

        They are made one by one, so that one may stop where a trial does, however far on a step is.
        """
        for name, text in reading.refused.items():
            self.refused[name] = (self.refused.get(name, (0, ""))[0] + 1, text)
        self._latest |= reading.metrics
        if not self._objective:
            self._objective = next(iter(reading.metrics), "")
        if self._objective not in reading.metrics:
            return iter(())
        step = self._seen + 1 if reading.step is None else reading.step
        self._seen = max(self._seen, step)
        if step <= self.start:
            self.repeated += 1
            return iter(())
        first, self.reached = self.reached + 1, max(self.reached, step)
        metrics = dict(self._latest)
        return (Report(step=each, metrics=dict(metrics)) for each in range(first, step + 1))

    def explanation(self) -> str:
        """A sentence about matches of the objective that were no numbers, or what came without it; empty for none."""
        objective = self._objective or next(iter(self.refused), "")  # A single training has none.
        count, text = self.refused.get(objective, (0, ""))
        if count:
            times = "once" if count == 1 else f"{count} times"
            return f"{objective!r} was no number {times}, last {text!r}"
        if self._latest and self._objective not in self._latest:
            return (
                f"it reported {', '.join(map(repr, self._latest))} and no {self._objective!r}, which is the objective"
            )
        return ""


class Lines:
    """Whole lines of what is read piece by piece.

    Args:
        longest: bytes of a line; behind them it goes on as another.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = b""

    def take(self, data: bytes) -> list[str]:
        """The lines that these bytes end, without their ends."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        pieces = [piece for line in whole for piece in self._cut(line)]
        *longer, self._rest = self._cut(self._rest)
        return [piece.decode(errors="replace") for piece in (*pieces, *longer)]

    def end(self) -> list[str]:
        """The line that has no end, once nothing follows."""
        rest, self._rest = self._rest, b""
        return [rest.decode(errors="replace")] if rest else []

    def _cut(self, line: bytes) -> list[bytes]:
        return [line[at : at + self._longest] for at in range(0, len(line), self._longest)] or [b""]
