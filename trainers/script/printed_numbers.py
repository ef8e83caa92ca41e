"""Numbers as programs print them: how a text is read, and whether it is part of a longer number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

Span = tuple[int, int]
"""Begin and end of a part of a line."""

_OPENING, _CLOSING = "([{<'\"", ".,;:)]}>'\"%"
"""Characters beside a number that an expression such as `\\S+` takes with it."""
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:(?:,\d{3})+|(?:_\d{3})+)(?:\.\d*)?(?:[eE][-+]?\d+)?")
_MINUS = "\u2212"
"""The minus sign of typesetting, which some locales print."""
_NUMBER = re.compile(
    r"""
    (?:(?<![\w)\]])[-+\u2212])?                 # a hyphen behind a word, a number or a bracket is no sign
    (?:
        (?<![\w.])0[xX][\da-fA-F.]+(?:[pP][-+]?\d+)?  # 0x1p-3, which is no number here
        | \d+\.\d+(?:\.\d+)+                  # 1.2.3, a version
        | (?:
            (?:[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)  # 1,236
            | [1-9]\d{0,2}(?:_\d{3})+(?!_?\d)   # 1_236
            | \d+)
            (?:\.\d*)?
            | (?<![\w.)\]])\.\d+                # .5
        )
        (?:[eE][-+\u2212]?\d+)?                # also before a unit: 5e-3s
    )
    """,
    re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(r",\d+(?![\d.,]*[.,]\d)")


def number(text: str) -> float | None:
    """Return the number that a text is, or None.

    Signs, exponents, `nan`, `inf` and separators of thousands (`1,236.5`, `1_236`) are read; brackets, quotation marks,
    a percent sign and the punctuation of a sentence around the number are passed over. `93%` is 93. A number with a
    unit, a version and a hexadecimal number are none.

    Args:
        text: as an expression matched it.
    """
    text = text.strip().replace(_MINUS, "-")
    for each in (text, text.lstrip(_OPENING).rstrip(_CLOSING)):
        each = each.replace(",", "").replace("_", "") if _THOUSANDS.fullmatch(each) else each
        with suppress(ValueError):
            return float("" if "_" in each else each)  # 1_2 is 12 in Python's source alone.
    return None


def longer_number(line: str, taken: Span, others: Iterable[Span] = ()) -> str:
    """Return the number in a line of which only a part was taken; empty if the whole number was taken.

    A longer text with the same value, such as `+0.5` or `5.`, is no longer number.

    Args:
        line: of output.
        taken: the part that is read as a number.
        others: parts that are read as other numbers, and so end this one.
    """
    start, end = taken
    value = number(line[start:end])
    for first, last in _numbers_at(line, start, end):
        inside = start <= first and last <= end
        split = any(low < last and first < high and (high <= start or end <= low) for low, high in others)
        if not inside and not split and (value is None or number(line[first:last]) != value):
            return line[first:last]
    return ""


def _numbers_at(line: str, start: int, end: int) -> Iterator[Span]:
    """The numbers in the words of a line that a part of it touches."""
    first = max(line.rfind(space, 0, start) for space in " \t") + 1
    ends = [at for space in " \t" if (at := line.find(space, end)) >= 0]
    last = min(ends, default=len(line))
    word = line[first:last]
    for match in _NUMBER.finditer(word):
        low, high = match.start() + first, match.end() + first
        if "." not in match[0] and match[0][-1:].isdigit() and (more := _DECIMAL_COMMA.match(line, high)):
            high = more.end()  # `0,93`, as some languages write it: what is before the comma is not the number.
        touches = low <= start <= high if start == end else low < end and start < high
        if touches:
            yield low, high
