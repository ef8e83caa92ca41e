"""Text: lines or files in UTF-8."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.examples.located import File, Located, classes_of, labels_of, located
from trainers.errors import DataError

COUNTED_BYTES = 256 << 20
"""Files of so many bytes together are counted on the driver; lines of larger ones on workers alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Files of text; see `Form`."""

    located: Located
    lines: bool
    classes: tuple[str, ...]
    rows: int | None

    ragged: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """See `Form`."""
        return {"columns": ["text", "label"] if self.classes else ["text"], "classes": list(self.classes) or None}

    def opened(self) -> Lines | Documents:
        """See `Form`."""
        return Lines(self) if self.lines else Documents(self)


class Documents:
    """A dataset of files, each an example."""

    def __init__(self, form: Text) -> None:
        self._form = form
        self._labels = labels_of(form.located.files, form.classes)

    def __len__(self) -> int:
        return len(self._form.located.files)

    def __getitem__(self, row: int) -> Any:
        found = self._form.located
        file = found.files[row]
        text = _decoded(found.read(file), found.name(file))
        return (text, self._labels[row]) if self._labels else text


class Lines:
    """A dataset of lines: files on disks are mapped into memory, others read into it."""

    def __init__(self, form: Text) -> None:
        self._form = form
        self._held = [_held(form.located, file) for file in form.located.files]
        self._labels = labels_of(form.located.files, form.classes)
        self._starts = [starts_of(data) for data in self._held]
        self._ends = list(accumulate(len(starts) - 1 for starts in self._starts))
        if form.rows is not None and len(self) != form.rows:
            raise DataError(
                f"{form.located.name(form.located.files[0])} and the files beside it have {len(self):,} lines, and had "
                f"{form.rows:,} when the channel was opened; put them back, or begin a new job"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return Lines, (self._form,)

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, row: int) -> Any:
        if not 0 <= row < len(self):
            raise IndexError(f"line {row} of {len(self)}")
        at = bisect_right(self._ends, row)
        line = row - (self._ends[at - 1] if at else 0)
        file, starts, found = self._form.located.files[at], self._starts[at], self._form.located
        raw = self._held[at][int(starts[line]) : int(starts[line + 1])].rstrip(b"\n").removesuffix(b"\r")
        text = _decoded(raw, f"line {line + 1:,} of {found.name(file)}")
        return (text, self._labels[at]) if self._labels else text


def opened(arguments: Mapping[str, Any]) -> Text:
    """What `Examples.text` stands for.

    Raises:
        DataError: there are no files, or some are of no class.
    """
    found = located(arguments["paths"], (".txt",), "a file of text")
    lines = arguments["each"] == "line"
    remedy = "put it into one, or leave labelled out"
    classes = classes_of(found.files, remedy) if arguments["labelled"] else ()
    if arguments["labelled"] and not classes:
        raise DataError(f"{arguments['paths'][0]} has no folder of a class; leave labelled out, or make one for each")
    rows = _counted(found) if lines else len(found.files)
    if rows == 0:
        raise DataError(f"{found.name(found.files[0])} has no line; give files that have some")
    return Text(located=found, lines=lines, classes=classes, rows=rows)


def starts_of(data: Any) -> NDArray[np.int64]:
    """Where lines begin, and where the last one ends; a line's end at the very end begins no other.

    Args:
        data: bytes, or what has such a buffer.
    """
    if not len(data):
        return np.zeros(1, np.int64)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    return np.concatenate([[0], ends, [] if len(ends) and ends[-1] == len(data) else [len(data)]]).astype(np.int64)


def _counted(found: Located) -> int | None:
    if sum(file.size for file in found.files) > COUNTED_BYTES:
        return None
    return sum(len(starts_of(found.read(file))) - 1 for file in found.files)


def _held(found: Located, file: File) -> Any:
    if found.scheme or not file.size:
        return found.read(file)
    try:
        with open(file.path, "rb") as opened:
            return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise DataError(f"{found.name(file)} cannot be read: {error}; put it back, or begin a new job") from None


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
