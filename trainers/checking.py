"""Checks that many modules make: whole and finite numbers, the nearest of known names; and names in errors."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import TypeGuard

from trainers.errors import ConfigurationError

MOST_BITS = 1024
"""Of whole numbers that are read and shown: a float holds no more, and Python writes out at most 4,300 digits."""


MOST_WHOLE = 2**63 - 1
"""The largest whole number that the record and NumPy hold."""


def is_whole(value: object, least: float = -MOST_WHOLE, most: float = MOST_WHOLE) -> TypeGuard[int]:
    """Whether a value is a whole number from `least` to `most`; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number, finite and no larger than a float can be; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def shown(value: object) -> str:
    """A value as an error shows it: Python writes out no whole number of more than 4,300 digits."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a whole number of {value.bit_length():,} bits"
    try:
        return repr(value)
    except ValueError:
        return f"a {type(value).__name__} with a whole number of more than 4,300 digits"


def check_whole(what: str, value: object, least: int, *, required: bool = False) -> None:
    """Refuses what is no whole number, `least` or more, that 64 bits hold; None too, where a value is required.

    Raises:
        ConfigurationError: naming it, its value and what to give.
    """
    if (value is not None or required) and not is_whole(value, least):
        wanted = (
            f" from {least} to 2**63 - 1" if isinstance(value, int) and value > MOST_WHOLE else f", {least} or more"
        )
        raise ConfigurationError(f"{what} is {shown(value)}; give a whole number{wanted}")


def nearest(word: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The nearest of the known names, upper and lower case alike; empty if none is near.

    Args:
        word: a name, or something else in the place of one.
        known: names.
        cutoff: likeness from 0 to 1 that a name has to have, as difflib counts it.
    """
    by_lower = {name.lower(): name for name in known}
    text = word if isinstance(word, str) else shown(word)
    near = difflib.get_close_matches(text.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else ""


def did_you_mean(word: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A clause for the end of an error, "; did you mean 'x'?"; empty if no name is near. See `nearest`."""
    near = nearest(word, known, cutoff)
    return f"; did you mean {near!r}?" if near else ""


def some_of(names: Sequence[str], most: int = 4) -> str:
    """The first names with commas, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
