"""Metrics of a program: from lines of its output by regular expressions, and from JSON lines of a file."""

from __future__ import annotations

import json
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainers.checking import did_you_mean, is_number
from trainers.errors import ConfigurationError, JobError
from trainers.script.printed_numbers import longer_number, number
from trainers.script.steps import STEP

LONGEST = 10_000
"""Bytes of a line; a longer one is cut: an expression may take the square of a line's length."""

SHOWN = 200
"""Characters of a line that an error shows."""

_VALUE = "value"
_WHOLE = (r"\S+", "[-+0-9.,_eE]+", "[-+0-9.eE]+")
"""Groups that take whole numbers, the one that takes most first."""
_KEYS = ("Name", "Regex")
_WORD = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.,+-\xe2\x88\x92"
"""Bytes within numbers and words; the last three are the minus sign of typesetting."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Colours, movements of the cursor and titles, as terminals take them."""
_PARTS = re.compile(r"[\r\n\b]+")
"""What separates the parts of a line: each part stood on the terminal by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a line says.

    Args:
        metrics: values by names.
        step: the program's step that they are of, if the line says so.
        refused: texts that stood in the place of a number, by names.
        source: the place of the step, or of a refused text, for an error.
        at: when it came.
    """

    metrics: dict[str, float]
    step: float | None = None
    refused: dict[str, str] = field(default_factory=dict)
    source: str = field(default="", compare=False)
    at: float = field(default_factory=time.time, compare=False)


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
    r"""Refuses metric definitions that are not as SageMaker has them.

    Args:
        definitions: `[{"Name": "validation:accuracy", "Regex": "acc=(\S+)"}]`, or None.

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
            "the number, as in 'acc=(\\S+)', or name it, as in '(?P<value>\\S+)', and write others (?:...)"
        )
    return others[0]


class MetricDefinitions:
    r"""Regular expressions that find metrics in lines of output, as SageMaker's.

    Args:
        definitions: `[{"Name": "validation:accuracy", "Regex": "acc=(\S+)"}]`; None or empty for none. The number
            is the one group, or the one named `value`; a group named `step` is the program's step that it is of.
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
        """Yield what each part of a line says; carriage returns and backspaces of progress bars end a part.

        Args:
            line: of output, with or without its end.

        Raises:
            JobError: a group took a part of a number.
            ConfigurationError: a group `step` took no number.
        """
        for part in _PARTS.split(_ESCAPES.sub("", line)):
            reading = self._read(part) if part else None
            if reading:
                yield reading

    def _read(self, part: str) -> Reading | None:
        metrics: dict[str, float] = {}
        refused: dict[str, str] = {}
        step: float | None = None
        source = ""
        for each in self._definitions:
            match = each.found(part)
            text = match[each.group] if match else None
            if match is None or text is None:
                continue
            _check_whole(each, match, each.group)
            value = number(text)
            if value is None:
                refused[each.name] = text
                source = source or f"the line {_shown(match)!r}"
                continue
            metrics[each.name] = value
            if step is None and match.groupdict().get(STEP) is not None:
                _check_whole(each, match, STEP)
                source = f"the regular expression of {each.name!r} in the line {_shown(match)!r}"
                step = _step(number(match[STEP]), match[STEP], source)
        return Reading(metrics=metrics, step=step, refused=refused, source=source) if metrics or refused else None


def _check_whole(definition: _Definition, match: re.Match[str], group: int | str) -> None:
    """Refuses a match whose group is a part of a longer number."""
    own = match.span(group)
    others = [match.span(each) for each in range(1, definition.pattern.groups + 1) if match.span(each) != own]
    if not longer_number(match.string, own, others):
        return
    others += _commas(definition.pattern.pattern, _index(definition.pattern, group), own)
    if not (longer := longer_number(match.string, own, others)):
        return
    better = _better(definition, match, group, longer)
    raise JobError(
        f"the regular expression '{definition.pattern.pattern}' of {definition.name!r} takes {match[group]!r} of the "
        f"number {longer!r} in the line {_shown(match)!r}; give "
        + (f"'{better}'" if better else r"a group that takes the whole number, such as (\S+)")
    )


def _better(definition: _Definition, match: re.Match[str], group: int | str, longer: str) -> str:
    """An expression like a definition's, whose group takes the whole of a number; empty if none is found."""
    pattern = definition.pattern
    begin, end = _inside(pattern.pattern, _index(pattern, group))
    for whole in _WHOLE:
        better = pattern.pattern[:begin] + whole + pattern.pattern[end:]
        try:
            found = _Definition(definition.name, re.compile(better), group).found(match.string)
        except (re.error, IndexError):
            continue
        if found and number(found[group] or "") is not None and number(found[group]) == number(longer):
            return better
    return ""


def _index(pattern: re.Pattern[str], group: int | str) -> int:
    return pattern.groupindex[group] if isinstance(group, str) else group


def _commas(pattern: str, index: int, taken: tuple[int, int]) -> list[tuple[int, int]]:
    """Commas that an expression has directly beside a group: they stand between two numbers."""
    begin, end = _inside(pattern, index)
    before, after = pattern[: pattern.rfind("(", 0, begin)], pattern[end + 1 :]
    left = [(taken[0] - 1, taken[0])] if before.endswith(",") else []
    return left + ([(taken[1], taken[1] + 1)] if after.startswith(",") else [])


def _inside(pattern: str, index: int) -> tuple[int, int]:
    """Where the inside of a group begins and ends in the text of an expression."""
    opened: list[tuple[int, int]] = []
    count, at, in_set = 0, 0, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif in_set:
            in_set = character != "]"
        elif character == "[":
            in_set = True
            at += pattern[at + 1 : at + 2] == "^"
            at += pattern[at + 1 : at + 2] == "]"
        elif character == "(":
            named = pattern.startswith("(?P<", at)
            captures = named or pattern[at + 1 : at + 2] != "?"
            count += captures
            opened.append((count if captures else 0, pattern.index(">", at) + 1 if named else at + 1))
        elif character == ")" and opened:
            own, begin = opened.pop()
            if own == index:
                return begin, at
        at += 1
    return 0, 0


def _shown(match: re.Match[str]) -> str:
    """The line of a match, or the part of it around the match."""
    line = match.string
    if len(line) <= SHOWN:
        return line
    begin = max(0, min(match.start(), len(line) - SHOWN))
    return line[begin : begin + SHOWN]


def _step(given: Any, shown: object, source: str) -> float:
    if not is_number(given):
        raise ConfigurationError(f"{source} gives step {shown!r}; give numbers, such as 1, 2, 3, one a unit")
    return given


def _whole(digits: str) -> int | float:
    """A whole number, or infinity for one that no float can hold."""
    return int(digits) if is_number(float(digits)) else float(digits)


def read_json(line: str, file: str, place: int, key: str = STEP) -> Reading | None:
    """What a line of a file of JSON objects says; None of an empty line.

    Args:
        line: a whole one, such as `{"validation:accuracy": 0.9, "step": 3}`.
        file: its file, for the error.
        place: number of the line, from 1, for the error.
        key: the key of the step; `step` has it too, where the line has no such key.

    Raises:
        ConfigurationError: it is no JSON object, or its step is no number.
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
            f"line {place} of {file} is {shown!r}; write one JSON object a line, such as "
            '{"validation:accuracy": 0.9, "step": 3}'
        )
    step = found.pop(key if found.get(key) is not None else STEP, None)
    source = f"line {place} of {file}"
    numbers = {name: value for name, value in found.items() if not isinstance(value, bool)}
    return Reading(
        metrics={name: float(value) for name, value in numbers.items() if isinstance(value, int | float)},
        step=None if step is None else _step(step, step, source),
        refused={name: json.dumps(value) for name, value in numbers.items() if not isinstance(value, int | float)},
        source=f"{source}, {line.strip()[:SHOWN]!r},",
    )


class ReportsFile:
    """The file that a program appends JSON lines to, read as it grows, and anew where it was written anew.

    Args:
        path: where it is, or will be.
        key: the key of a line's step.
    """

    def __init__(self, path: Path, key: str = STEP) -> None:
        self._path, self._key = path, key
        self._at, self._lines = 0, 0
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
            reading = read_json(line.decode("utf-8", "replace"), self._path.name, self._lines, self._key)
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


class Lines:
    """Whole lines of what is read piece by piece.

    Args:
        longest: bytes of a line. A longer one is cut behind a carriage return, else behind a space, else before the
            word or number that would be cut, and in its midst only if it is as long.
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
        pieces, start = [], 0
        while len(line) - start > self._longest:
            window = line[start : start + self._longest]
            spaced = max(window.rfind(b" "), window.rfind(b"\t")) + 1
            end = window.rfind(b"\r") + 1 or spaced or len(window.rstrip(_WORD)) or len(window)
            pieces.append(window[:end])
            start += end
        return [*pieces, line[start:]]
