"""Checks of a range's bounds and values: finite numbers, whole numbers, scalars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from numbers import Real
from typing import TypeAlias

from trainers.errors import ConfigurationError

Scalar: TypeAlias = bool | int | float | str | None

# Searchers count in doubles, which hold every whole number up to here and not every one beyond.
LARGEST_INTEGER = 2**53


def real(what: str, value: object) -> float:
    """A finite number as a float; `what` says in errors which it is."""
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
            if math.isfinite(number):
                return number
    raise ConfigurationError(f"{what} is {value!r}; give a finite number")


def whole(what: str, value: object) -> int:
    """A whole number as an int; `what` says in errors which it is."""
    number = int(value) if isinstance(value, int) and not isinstance(value, bool) else real(what, value)
    if number != int(number):
        raise ConfigurationError(f"{what} is {value!r}; give a whole number")
    if abs(number) > LARGEST_INTEGER:
        raise ConfigurationError(f"{what} is {value!r}; give a number from -2**53 to 2**53")
    return int(number)


def parsed(value: object) -> object:
    """The number that a string says, if it says one."""
    if isinstance(value, str):
        for kind in (int, float):
            with suppress(ValueError):
                return kind(value)
    return value


def within(value: float, low: float, high: float, *, slack: int) -> float:
    """The value, if it is off the bounds by no more than `slack` and what rounding explains."""
    slack_in_all = slack + 1e-9 * max(abs(low), abs(high))
    if not low - slack_in_all <= value <= high + slack_in_all:
        raise ConfigurationError(f"the suggestion is {value!r}, outside {low!r} to {high!r}")
    return value


def either(values: Sequence[object]) -> str:
    """The values as an error lists them."""
    *rest, last = map(repr, values)
    return f"{', '.join(rest)} or {last}" if rest else last
