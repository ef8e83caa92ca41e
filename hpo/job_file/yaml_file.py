"""YAML of a job file as plain values, each with its line and column.

YAML as version 1.2 has it, which editors go by: `1e-3` is a number, `yes` and `2026-01-31` are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hpo.text import masked
from hpo.yaml_core import DEEPEST, TAG, compose
from trainers.checking import MOST_BITS
from trainers.errors import ConfigurationError

Keys: TypeAlias = tuple[str | int, ...]

MOST_VALUES = 10_000

MOST_BYTES = 256 * 1024
"""Bytes of a job file in UTF-8."""

MOST_PROBLEMS = 20
"""Problems that one error names."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where a value stands: a line of the file, or an option of the command line."""

    override: str = ""
    line: int = 0

    def __str__(self) -> str:
        return self.override or f"line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Problem with the value at `keys`; `place` where that is not where the value stands."""

    keys: Keys
    text: str
    place: Place | None = None


class JobFileError(ConfigurationError):
    """A job file is wrong.

    Args:
        message: all that is wrong, for people.
        fields: a text for each wrong value, by its keys, with dots between them.
    """

    def __init__(self, message: str, fields: Mapping[str, str]) -> None:
        super().__init__(message)
        self.fields = dict(fields)


@dataclass(slots=True, kw_only=True)
class JobFile:
    """Content of a job file.

    Args:
        path: the file; empty where there is none, but options of the command line alone.
        kind: what messages call it.
        values: its keys and values, with what overrides them.
        places: where each value stands, by its keys.
        problems: what cannot be read.
    """

    path: str
    kind: str = "job file"
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, keys: Keys) -> Place | None:
        """Where the value stands, or the group that it is missing from."""
        return next((self.places[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in self.places), None)

    def refusal(self, problems: Iterable[Problem]) -> JobFileError:
        """Says what is wrong, by line, up to `MOST_PROBLEMS`; of several problems with one value, the first."""
        first: dict[Keys, Problem] = {}
        for problem in (*self.problems, *problems):
            first.setdefault(problem.keys, problem)
        placed = ((problem.place or self.place(keys) or Place(), problem) for keys, problem in first.items())
        ordered = sorted(placed, key=lambda each: (each[0], each[1].text))
        lines = [f"  {f'{place}: ' if place != Place() else ''}{each.text}" for place, each in ordered[:MOST_PROBLEMS]]
        if (more := len(ordered) - MOST_PROBLEMS) > 0:
            lines.append(f"  and {more:,} more problems; correct these first")
        texts = "\n".join(lines)
        fields = {".".join(map(str, each.keys)): each.text for _, each in ordered[:MOST_PROBLEMS]}
        return JobFileError(f"{self}:\n{texts}" if self.path else texts.strip(), fields)

    def __str__(self) -> str:
        return f"{self.kind} {self.path!r}" if self.path else f"the {self.kind}"


def read(path: str | Path, overrides: Iterable[str] = (), *, kind: str = "job file") -> JobFile:
    """Reads a job file's values; whether they make a job is not looked at.

    Args:
        path: the YAML file.
        overrides: "dotted.key=value", the value as YAML, over what the file says.
        kind: what messages call it.

    Raises:
        ConfigurationError: it is not there, too large, not YAML, or holds no keys.
    """
    file = JobFile(path=str(path), kind=kind)
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        text = content.decode("utf-8") if len(content) <= MOST_BYTES else ""
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file} is not YAML: it is not text in UTF-8") from error
    if len(content) > MOST_BYTES:
        raise _too_large(file)
    file = parsed(text, path, kind=kind)
    for override in overrides:
        _override(file, override)
    return file


def parsed(text: str, path: str | Path, *, kind: str = "job file") -> JobFile:
    """The same of a text.

    Args:
        text: in YAML.
        path: what messages call the file.
        kind: likewise.

    Raises:
        ConfigurationError: it is too large, not YAML, or holds no keys.
    """
    file = JobFile(path=str(path), kind=kind)
    if len(text) > MOST_BYTES or len(text.encode(errors="replace")) > MOST_BYTES:
        raise _too_large(file)
    try:
        node = compose(text)
    except ValueError as error:
        raise ConfigurationError(f"{file} is not YAML: {error}") from error
    reader = _Reader(file, lambda node: Place(line=node.start_mark.line + 1))
    values = reader.value(node, ()) if node is not None else None
    if not isinstance(values, dict):
        raise ConfigurationError(f"{file} holds no keys; `hpo init` writes a file to start from")
    file.values = values
    return file


def _too_large(file: JobFile) -> ConfigurationError:
    return ConfigurationError(
        f"{file} is larger than {MOST_BYTES // 1024} KiB; leave out what no job needs, and name large data by its path"
    )


def overridden(overrides: Iterable[str]) -> JobFile:
    """The content of command-line options, without a file.

    Args:
        overrides: as `read` takes them.
    """
    file = JobFile(path="")
    for override in overrides:
        _override(file, override)
    return file


def dotted(keys: Keys) -> str:
    """Keys as people write them; a key that is not plain is quoted."""
    return ".".join(str(key) if re.fullmatch(r"[\w/:-]+", str(key)) else repr(key) for key in keys)


def shown(value: Any) -> str:
    """A value as a job file would have it, on one short line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, dict):
        text = "{" + ", ".join(f"{key}: {shown(item)}" for key, item in list(value.items())[:9]) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(shown(item) for item in value[:9]) + "]"
    else:
        text = masked(repr(value))
    return text if len(text) <= 50 else f"{text[:40]} ..."


class _Reader:
    """Turns YAML's tree into plain values, and notes where each stands and what cannot be one."""

    def __init__(self, file: JobFile, place: Callable[[Node], Place]) -> None:
        self._found = file
        self._place = place
        self._values = 0

    def value(self, node: Node, keys: Keys) -> Any:
        """The value of a node."""
        self._found.places.setdefault(keys, self._place(node))
        self._values += 1
        if self._values > MOST_VALUES:
            raise ConfigurationError(
                f"{self._found} has more than {MOST_VALUES} values, its aliases spelled out; no job needs so many"
            )
        if len(keys) > DEEPEST:
            return self._problem(keys[:DEEPEST], f"{dotted(keys[:3])}: nested deeper than {DEEPEST} levels")
        kind = str(node.tag).removeprefix(TAG)
        if isinstance(node, MappingNode) and kind == "map":
            return dict(self._entries(node, keys))
        if isinstance(node, SequenceNode) and kind == "seq":
            return [self.value(item, (*keys, place)) for place, item in enumerate(node.value)]
        if isinstance(node, ScalarNode) and kind in _SCALARS:
            try:
                return _SCALARS[kind](node.value)
            except (KeyError, ValueError):
                text = f"{dotted(keys)} is {shown(node.value)}, which cannot be read as {kind}; give another value"
                return self._problem(keys, text)
        return self._problem(keys, f"{dotted(keys)} has the tag {node.tag!r}; leave the tag out")

    def _entries(self, node: MappingNode, keys: Keys) -> Iterator[tuple[str, Any]]:
        lines: dict[str, Place] = {}
        for key_node, value_node in node.value:
            place = self._place(key_node)
            if not isinstance(key_node, ScalarNode):
                self._problem((*keys, "?"), f"{dotted(keys) or 'the file'} has a key that is not text", place)
                continue
            key = key_node.value
            inner = (*keys, key)
            if key_node.tag != f"{TAG}str":
                self._problem(inner, f"{dotted(inner)}: a key has to be text; put {key or 'it'} into quotes", place)
                continue
            if key in lines:
                text = f"{dotted(inner)}: given a second time, first on {lines[key]}; remove one of them"
                self._problem((*inner, "?"), text, place)
                continue
            lines[key] = self._found.places[inner] = place
            yield key, self.value(value_node, inner)

    def _problem(self, keys: Keys, text: str, place: Place | None = None) -> None:
        self._found.problems.append(Problem(keys=keys, text=text, place=place))


def _whole(text: str) -> int:
    number = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if number.bit_length() > MOST_BITS:
        raise ValueError(f"a number of more than {MOST_BITS} bits")
    return number


_SCALARS: dict[str, Callable[[str], Any]] = {
    "null": lambda text: None,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": _whole,
    "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    "str": str,
}


def _override(file: JobFile, override: str) -> None:
    """Puts a value of the command line over the file's."""
    place = Place(override=f"--set {masked(override)}")

    def refuse(text: str) -> None:
        file.problems.append(Problem(keys=(str(place),), text=text, place=place))

    key, equals, text = override.partition("=")
    keys: Keys = tuple(key.split("."))
    if not equals:
        return refuse("it has no value; give key=value, such as tuning.max_jobs=10")
    if not all(keys):
        return refuse("it has no key, or an empty part in it; give key=value, such as tuning.max_jobs=10")
    group: Any = file.values
    for end, parent in enumerate(keys[:-1], 1):
        if group.get(parent) is None:
            group[parent] = {}
            file.places[keys[:end]] = place
        group = group[parent]
        if not isinstance(group, dict):
            return refuse(f"{dotted(keys[:end])} is {shown(group)}, not a group of keys")
    try:
        node = compose(text)
    except ValueError as error:
        return refuse(f"the value is not YAML: {error}")
    for old in [old for old in file.places if old[: len(keys)] == keys]:
        del file.places[old]
    file.places[keys] = place
    file.problems = [problem for problem in file.problems if problem.place or problem.keys[: len(keys)] != keys]
    group[keys[-1]] = None if node is None else _Reader(file, lambda _: place).value(node, keys)
    return None
