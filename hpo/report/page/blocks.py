"""Blocks of a page: text, facts, code and tables; pictures are `hpo.report.pictures.figure.Figure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured number and how uncertain it is, as one cell.

    Args:
        value: the number.
        error: its standard error; None where that is not known.
        signed: whether a plus stands before it, as before a difference.
    """

    value: float | None
    error: float | None = None
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        title: its heading.
        digits: digits after the point of its numbers; None shows four significant ones.
        choose: whether the reader may choose rows by its values, which are few, such as a status.
    """

    title: str
    digits: int | None = None
    choose: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows and columns. The first cell of a row says what the row is.

    The reader can sort by any column; a long table begins with its first rows and can be searched.

    Args:
        columns: their headings, as text or as `Column`.
        rows: cells: text, numbers, `Measured`, or None for what is not there.
        caption: what the table holds, in a sentence.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[object]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; a blank line begins a new paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are, such as the versions that a job ran on.

    Args:
        items: pairs of a name and a value, which is shown as the cell of a table would be.
        caption: what they are about.
    """

    items: Sequence[tuple[str, object]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be read, or copied with a button, as it is.

    Args:
        text: the lines.
        language: what it is written in, for its label, such as "YAML".
        caption: what it is.
        folded: whether only its caption is seen until the reader opens it.
    """

    text: str
    language: str = ""
    caption: str = ""
    folded: bool = False
