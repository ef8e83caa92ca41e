"""Metrics from files that a program writes: TensorBoard's event files, CSV, JSON lines and JSON documents."""

from __future__ import annotations

import csv
import glob
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from trainers.errors import ConfigurationError
from trainers.metrics import flat
from trainers.script.environment import Folders
from trainers.script.event_files import EventStream
from trainers.script.metric_lines import Reading, ReportsFile
from trainers.script.steps import STEP

LOOK_SECONDS = 0.5
"""How often it is looked for new files; those that are known are looked at with each reading."""
_TAIL = 64
"""Bytes before the place where a file is read on, by which it shows that it was written anew."""
_MISSING = frozenset({"", "na", "n/a", "none", "null", "-"})
"""Cells of a CSV file without a value."""
_PLACES = ("checkpoints", "model", "output")
"""Folders that a glob may begin with, in braces."""
_BRACES = re.compile(r"\{([^{}]*)\}")


def check_globs(globs: object) -> tuple[str, ...]:
    """Return the globs of `metric_files`.

    Raises:
        ConfigurationError: they are no list of globs.
    """
    if globs is None:
        return ()
    if isinstance(globs, str | bytes) or not isinstance(globs, Sequence):
        raise ConfigurationError(f"metric_files is {globs!r}; give a list of globs, such as ['logs/**/metrics.csv']")
    for place, each in enumerate(globs):
        what = f"metric_files[{place}]"
        if not isinstance(each, str) or not each.strip():
            raise ConfigurationError(f"{what} is {each!r}; give a glob of files, such as 'logs/**/metrics.csv'")
        for name in _BRACES.findall(each):
            if name not in _PLACES or not each.startswith(f"{{{name}}}"):
                raise ConfigurationError(
                    f"{what} is {each!r}, and {{{name}}} is no folder at its beginning; give "
                    f"{', '.join(f'{{{known}}}' for known in _PLACES)}, or one glob for each alternative"
                )
    return tuple(globs)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row, an object or a scalar, as its file has it.

    Args:
        values: by names; nested ones have their path.
        step: of an event file; None where `values` have it, if anything.
    """

    values: Mapping[str, Any]
    step: int | None = None

    @property
    def mark(self) -> int:
        """What tells it from others."""
        return hash((self.step, repr(sorted(self.values.items()))))


class _Facts(NamedTuple):
    """By which it shows that a file was written to."""

    file: int
    size: int
    written: int


def _facts(path: str) -> _Facts:
    found = os.stat(path)
    return _Facts(found.st_ino, found.st_size, found.st_mtime_ns)


class _Parser(Protocol):
    """Reads a file whose end grows."""

    def take(self, data: bytes, *, over: bool) -> list[_Entry]:
        """Return the entries that these bytes complete; where it is over, the rest of them is complete."""


class _Lines:
    """Base of the parsers of files of lines."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes, *, over: bool) -> list[_Entry]:
        """See `_Parser.take`."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if over:
            whole, self._rest = [*whole, self._rest], b""
        texts = (line.decode("utf-8-sig", "replace").strip("\r\n\0") for line in whole)
        return [entry for text in texts if text.strip() if (entry := self._entry(text)) is not None]

    def _entry(self, line: str) -> _Entry | None:
        raise NotImplementedError


class _Csv(_Lines):
    """Rows of a CSV file; its first line has the names, and empty cells have no value."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._delimiter = ","

    def _entry(self, line: str) -> _Entry | None:
        if not self._names:
            self._delimiter = max(",;\t", key=line.count)
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=self._delimiter), [])]
        if not self._names or cells == self._names:
            self._names = cells
            return None
        values = {name: cell for name, cell in zip(self._names, cells, strict=False) if cell.lower() not in _MISSING}
        return _Entry(values) if values else None


class _JsonLines(_Lines):
    """Objects of a file that has one on each line; other lines say nothing."""

    def _entry(self, line: str) -> _Entry | None:
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                return _Entry(flat(found))
        return None


class _Events:
    """Scalars of an event file; those of one step that follow each other are one entry."""

    def __init__(self) -> None:
        self._stream = EventStream()

    def take(self, data: bytes, *, over: bool) -> list[_Entry]:
        """See `_Parser.take`."""
        entries: list[tuple[int, dict[str, float]]] = []
        for scalar in self._stream.take(data):
            if not entries or entries[-1][0] != scalar.step or scalar.tag in entries[-1][1]:
                entries.append((scalar.step, {}))
            entries[-1][1][scalar.tag] = scalar.value
        return [_Entry(values, step) for step, values in entries]


class _Growing:
    """A file to which its program appends; one that is written anew is read anew, but for entries that it had.

    Args:
        path: of the file.
        parser: makes the parser of its bytes.
        foreign: what is in it at first is of another program, so that all of it is new once it is written anew.
    """

    def __init__(self, path: str, parser: type[_Csv | _JsonLines | _Events], *, foreign: bool = False) -> None:
        self._path, self._kind, self._foreign = path, parser, foreign
        self._facts: _Facts | None = None
        self._known: list[int] = []
        """Marks of entries that it had before it was written anew."""
        self._parser: _Parser = parser()
        self._at, self._tail = 0, b""
        self._marks: list[int] = []

    def skip(self) -> None:
        """Pass over the entries so far, whatever they are."""
        with suppress(ConfigurationError):
            self.new(over=False)

    def new(self, *, over: bool) -> list[_Entry]:
        """Return the entries that are new.

        Raises:
            ConfigurationError: it is no file of its kind.
        """
        facts = _facts(self._path)
        if facts == self._facts and not over:
            return []
        with open(self._path, "rb") as file:
            file.seek(self._at - len(self._tail))
            same = file.read(len(self._tail)) == self._tail
            if not same or (self._foreign and facts != self._facts and self._at == facts.size):
                file.seek(0)
                self._known = [] if self._foreign else max(self._known, self._marks, key=len)
                self._foreign = False
                self._parser, self._at, self._tail, self._marks = self._kind(), 0, b"", []
            data = file.read()
        self._facts = facts
        self._at += len(data)
        self._tail = (self._tail + data)[-_TAIL:]
        try:
            return list(self._unknown(self._parser.take(data, over=over)))
        except ValueError as error:
            self._parser = self._kind()
            raise ConfigurationError(
                f"metric_files: {self._path} is no event file of TensorBoard's: {error}; give globs of its files alone"
            ) from None

    def _unknown(self, entries: list[_Entry]) -> Iterator[_Entry]:
        """The entries behind those that it had before it was written anew."""
        for entry in entries:
            self._marks.append(entry.mark)
            place = len(self._marks)
            if self._known[place - 1 : place] != self._marks[-1:]:
                self._known = []  # It is the file of another run.
                yield entry


class _Document:
    """A JSON document that is written anew each time, of entries such as `log_history`, or of metrics.

    Args:
        path: of the file.
        history: marks of entries of all documents of its name, which later ones repeat.
        foreign: what is in it at first is of another program.
    """

    def __init__(self, path: str, history: list[int], *, foreign: bool = False) -> None:
        self._path, self._history, self._foreign = path, history, foreign
        self._facts: _Facts | None = None

    def skip(self) -> None:
        """Pass over the entries so far."""
        if self._foreign:
            self._facts = _facts(self._path)
        else:
            self.new(over=False)

    def new(self, *, over: bool) -> list[_Entry]:
        """Return the entries that are new; none while it is being written."""
        facts = _facts(self._path)
        if facts == self._facts:
            return []
        with open(self._path, "rb") as file:
            entries = _entries(file.read())
        if entries is None:
            return []
        self._facts = facts
        marks = [entry.mark for entry in entries]
        new = entries[_common(marks, self._history) :]
        if new or len(marks) > len(self._history):
            self._history[:] = marks
        return new


_Source = _Growing | _Document


class MetricFiles:
    """Reads files of metrics as they grow, on the worker whose metrics count.

    What is there before the program starts is no metric of its: files of a source folder, and those of an earlier start
    in the folder of checkpoints.

    Args:
        globs: of the files, from the program's working directory on.
        folders: of the program.
        directory: where the program runs: an absolute path, or one from the copy of its source folder on.
        objective: the metric that may be in one file alone.
        key: the column or key, or of event files "step", that says which unit an entry is of; empty for the next one.
    """

    def __init__(
        self, globs: Sequence[str], folders: Folders, directory: str = "", *, objective: str = "", key: str = ""
    ) -> None:
        self._globs, self._objective, self._key = tuple(globs), objective, key
        self._root, self._checkpoints = os.path.join(folders.code, directory), folders.checkpoint
        places = {"checkpoints": folders.checkpoint, "model": folders.model, "output": folders.output}
        self._patterns = [
            _BRACES.sub(lambda found: glob.escape(places[found[1]]), os.path.expanduser(each)) for each in self._globs
        ]
        self._sources: dict[str, _Source] = {}
        self._histories: dict[str, list[int]] = {}
        self._steps: dict[tuple[str, int], tuple[str, float]] = {}
        """Of event files, what the objective was at a step of a folder, and the file that says so."""
        self._gave: str = ""
        """The file, or the folder of event files, that has the objective."""
        self._looked = -LOOK_SECONDS
        self._look(started=False)

    @property
    def paths(self) -> frozenset[str]:
        """The files that were found so far."""
        return frozenset(self._sources)

    def new(self, *, over: bool = False) -> Iterator[Reading]:
        """Yield what is new in the files.

        Args:
            over: nothing follows, so that the last line needs no end.

        Raises:
            ConfigurationError: two files have the objective, or one is not what its name says.
        """
        if over or time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
        for path, source in self._sources.items():
            entries: list[_Entry] = []
            with suppress(OSError):  # It was removed, or is moved just now.
                entries = source.new(over=over)
            for entry in entries:
                if (reading := self._reading(path, entry)) is not None:
                    yield reading

    def missing(self) -> str:
        """Return a sentence about globs that match no file of metrics; empty where one does."""
        if self._sources or not self._globs:
            return ""
        return (
            f"metric_files {list(self._globs)} match no event file of TensorBoard's, CSV or JSON that it wrote, from "
            "its working directory on"
        )

    def _look(self, *, started: bool = True) -> None:
        """Find files; those that are there before the start are passed over as they are."""
        self._looked = time.monotonic()
        for path in self._found():
            if path in self._sources:
                continue
            with suppress(OSError):
                if (source := self._source(path, started=started)) is not None:
                    if not started:
                        source.skip()
                    self._sources[path] = source

    def _found(self) -> list[str]:
        """Files that the globs match, the oldest first; of a folder that is named, all in it."""
        found: set[str] = set()
        for pattern in self._patterns:
            if not glob.has_magic(pattern) and os.path.isdir(os.path.join(self._root, pattern)):
                pattern = os.path.join(pattern, "**")
            matches = glob.glob(pattern, root_dir=self._root, recursive=True, include_hidden=True)
            found |= {os.path.normpath(os.path.join(self._root, each)) for each in matches}
        return sorted(filter(os.path.isfile, found), key=_written_at)

    def _source(self, path: str, *, started: bool) -> _Source | None:
        """What reads a file; None of one that has no metrics, or is empty so far."""
        kind = _kind(path)
        foreign = not started and not path.startswith(os.path.join(os.path.normpath(self._checkpoints), ""))
        if kind == "document":
            return _Document(path, self._histories.setdefault(os.path.basename(path), []), foreign=foreign)
        return _Growing(path, kind, foreign=foreign) if kind is not None else None

    def _reading(self, path: str, entry: _Entry) -> Reading | None:
        metrics: dict[str, float] = {}
        refused: dict[str, str] = {}
        for name, value in entry.values.items():
            if (number := _number(value)) is not None:
                metrics[name] = number
            elif isinstance(value, str):
                refused[name] = value
        folder = os.path.basename(os.path.dirname(path))
        if entry.step is not None and self._objective.startswith(f"{folder}/"):
            metrics |= {f"{folder}/{name}": value for name, value in metrics.items()}
        if self._objective in metrics and self._is_repeated(path, entry, metrics[self._objective]):
            return None
        said = metrics.get(self._key) if entry.step is None or self._key != STEP else entry.step
        step: Any = int(said) if isinstance(said, float) and said.is_integer() else said
        for name in {STEP, self._key} - {self._objective}:
            metrics.pop(name, None)
        return Reading(metrics=metrics, step=step, refused=refused) if metrics or refused else None

    def _is_repeated(self, path: str, entry: _Entry, value: float) -> bool:
        """Whether another file has said so before.

        Raises:
            ConfigurationError: the objective is in two places, or files of one place do not say the same.
        """
        if entry.step is None:
            self._check_one(os.path.basename(path) if isinstance(self._sources[path], _Document) else path)
            return False
        folder = os.path.dirname(path)
        self._check_one(folder)
        first, before = self._steps.setdefault((folder, entry.step), (path, value))
        if first == path:
            return False
        if repr(before) == repr(value):
            return True
        raise ConfigurationError(
            f"metric_files: {first} and {path} have {self._objective!r} at step {entry.step}, {before} and {value}; "
            "let one process alone write it"
        )

    def _check_one(self, place: str) -> None:
        self._gave = self._gave or place
        if self._gave == place:
            return
        named = f", or call the objective {os.path.basename(place)}/{self._objective}" if os.path.isdir(place) else ""
        raise ConfigurationError(
            f"metric_files: {self._objective!r} is in {self._gave} and in {place}; give globs of one of them{named}"
        )


class Reported:
    """Readings of the file that a program reports to, and of its own files.

    Args:
        reports: the file of reports.
        files: its own.
    """

    def __init__(self, reports: ReportsFile, files: MetricFiles) -> None:
        self._reports, self._files = reports, files

    def new(self, *, over: bool = False) -> Iterator[Reading]:
        """Yield what is new; see `ReportsFile.new` and `MetricFiles.new`."""
        yield from self._reports.new(over=over)
        yield from self._files.new(over=over)

    def missing(self) -> str:
        """See `MetricFiles.missing`."""
        return self._files.missing()


def _kind(path: str) -> type[_Csv | _JsonLines | _Events] | Literal["document"] | None:
    """What reads a file, by its name or its beginning; None where these do not tell."""
    name = os.path.basename(path).lower()
    if "tfevents" in name:
        return _Events
    if name.endswith((".csv", ".tsv")):
        return _Csv
    if name.endswith((".jsonl", ".ndjson")):
        return _JsonLines
    if name.endswith(".json"):
        return "document"
    with open(path, "rb") as file:
        begins = file.read(100).lstrip()[:1]
    return _JsonLines if begins == b"{" else None


def _entries(raw: bytes) -> list[_Entry] | None:
    """The entries of a JSON document; None while it is being written."""
    try:
        return _document(json.loads(raw))
    except (ValueError, RecursionError):
        entries = _JsonLines().take(raw, over=True)  # Such files are called .json, too.
        return entries if len(entries) > 1 else None


def _document(document: Any) -> list[_Entry]:
    """The entries of a document: those of its list, of its columns, or all of it as one."""
    if isinstance(document, list):
        return [_Entry(flat(each)) for each in document if isinstance(each, dict)]
    if not isinstance(document, dict):
        return []
    lists = {name: each for name, each in document.items() if isinstance(each, list)}
    for name in ("log_history", *lists):
        if lists.get(name) and all(isinstance(each, dict) for each in lists[name]):
            return [_Entry(flat(each)) for each in lists[name]]
    if lists and len(lists) == len(document):  # Keras' history: a list for each metric.
        rows = max(map(len, lists.values()))
        columns = lists.items()
        return [_Entry({name: each[row] for name, each in columns if row < len(each)}) for row in range(rows)]
    values = {name: value for name, value in flat(document).items() if _number(value) is not None}
    return [_Entry(values)] if values else []


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _common(new: Sequence[int], known: Sequence[int]) -> int:
    """How many entries two files have in common, from their beginnings on."""
    count = 0
    while count < min(len(new), len(known)) and new[count] == known[count]:
        count += 1
    return count


def _written_at(path: str) -> float:
    with suppress(OSError):
        return os.stat(path).st_mtime
    return 0.0
