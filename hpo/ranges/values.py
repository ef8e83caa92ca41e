"""Checks of a range's bounds, values and condition: finite numbers, whole numbers, scalars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, TypeAlias

from trainers.checking import shown
from trainers.errors import ConfigurationError
from trainers.plain import is_text, plain_scalar

Scalar: TypeAlias = bool | int | float | str | None

When: TypeAlias = Mapping[str, Sequence[Scalar]]
"""A condition of a range: values of other hyperparameters, by name, each of which has to have one of its own."""

# Searchers count in doubles, which hold every whole number up to here and not every one beyond.
LARGEST_INTEGER = 2**53

_MOST_BITS = 64
"""Of whole numbers among other values: records, searchers and trainers count in no more."""


def real(what: str, value: object) -> float:
    """A finite number as a float; `what` says in errors which it is."""
    own = plain_scalar(value)
    if isinstance(own, Real) and not isinstance(own, bool):
        with suppress(OverflowError):
            number = float(own)
            if math.isfinite(number):
                return number
    raise ConfigurationError(f"{what} is {shown(value)}; give a finite number")


def whole(what: str, value: object) -> int:
    """A whole number as an int; `what` says in errors which it is."""
    own = plain_scalar(value)
    number = int(own) if isinstance(own, int) and not isinstance(own, bool) else real(what, own)
    if number != int(number):
        raise ConfigurationError(f"{what} is {shown(value)}; give a whole number")
    if abs(number) > LARGEST_INTEGER:
        raise ConfigurationError(f"{what} is {shown(value)}; give a number from -2**53 to 2**53")
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


def scalar(what: str, value: object) -> Scalar:
    """None, a boolean, a number or a string, of Python's own types; `what` says in errors which it is."""
    own: Scalar = plain_scalar(value)
    if isinstance(own, float) and not math.isfinite(own):
        raise ConfigurationError(f"{what} is {value!r}; give a finite number")
    if isinstance(own, int) and own.bit_length() > _MOST_BITS:
        raise ConfigurationError(f"{what} is {shown(own)}; give a number of at most {_MOST_BITS} bits")
    if isinstance(own, str) and not is_text(own):
        raise ConfigurationError(f"{what} is {value!r}; give text that UTF-8 can say, without NUL")
    # Exactly these types: an enum's member, though it is a string, would come back from the record as another type.
    if own is None or type(own) in (bool, int, float, str):
        return own
    raise ConfigurationError(f"{what} is {value!r}; give None, a boolean, a number or a string")


def same(one: object, other: object) -> bool:
    """Whether two values are equal, in type too."""
    return type(one) is type(other) and one == other


def condition(cls: str, when: Any) -> dict[str, list[Scalar]]:
    """A range's condition, as lists of Python's own values; empty for a hyperparameter that is always there."""
    if when is None:
        return {}
    if not isinstance(when, Mapping) or not all(isinstance(name, str) and name for name in when):
        raise ConfigurationError(
            f"{cls}: when is {when!r}; give names of hyperparameters and their values, such as {{'optimizer': ['sgd']}}"
        )
    checked = {}
    for name, values in when.items():
        several = isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray)
        checked[name] = [scalar(f"{cls}: when[{name!r}]", value) for value in (values if several else [values])]
        if not checked[name]:
            raise ConfigurationError(f"{cls}: when[{name!r}] is {values!r}; give at least one value")
    return checked


def when_to_json(when: When) -> dict[str, Any]:
    """A condition for a range's record; nothing where there is none."""
    return {"when": {name: list(values) for name, values in when.items()}} if when else {}


def when_as_strings(when: When) -> dict[str, Any]:
    """A condition for a range in SageMaker's form, which has none: an entry more where there is one."""
    return {"When": {name: [str(value) for value in values] for name, values in when.items()}} if when else {}
