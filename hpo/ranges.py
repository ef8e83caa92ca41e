"""Ranges of tuned hyperparameters, under the names that users of SageMaker know, and their form in Ray Tune."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain

SCALING_TYPES = ("Auto", "Linear", "Logarithmic", "ReverseLogarithmic")

Scalar: TypeAlias = bool | int | float | str | None

# From this ratio of max_value to min_value on, scaling "Auto" is logarithmic.
AUTO_LOGARITHMIC_RATIO = 1000

# Searchers count in doubles, which hold every whole number up to here and not every one beyond.
LARGEST_INTEGER = 2**53


@dataclass(frozen=True, slots=True, repr=False)
class _NumericRange:
    """What ranges of numbers share."""

    __name__: ClassVar[str]

    min_value: float
    max_value: float
    scaling_type: str = "Auto"

    def __post_init__(self) -> None:
        cls = type(self).__name__
        for field in ("min_value", "max_value"):
            object.__setattr__(self, field, self._number(f"{cls}: {field}", getattr(self, field)))
        if self.min_value > self.max_value:
            raise ConfigurationError(
                f"{cls}: min_value is {self.min_value} and max_value is {self.max_value}; "
                "give a min_value that is not above max_value"
            )
        if not math.isfinite(self.max_value - self.min_value):
            raise ConfigurationError(
                f"{cls}: min_value is {self.min_value} and max_value is {self.max_value}, "
                "which are further apart than a float can say; give a narrower range"
            )
        self._check_scaling(cls)

    def _check_scaling(self, cls: str) -> None:
        scaling = self.scaling_type
        known = SCALING_TYPES if self.__name__ == "Continuous" else SCALING_TYPES[:-1]
        if scaling == "ReverseLogarithmic" and scaling not in known:
            raise ConfigurationError(
                f"{cls}: scaling_type is {scaling!r}, which only a ContinuousParameter has; give {_either(known)}"
            )
        if scaling not in known:
            raise ConfigurationError(
                f"{cls}: scaling_type is {scaling!r}; give {_either(known)}{_did_you_mean(scaling, known)}"
            )
        if scaling == "Logarithmic" and self.min_value <= 0:
            raise ConfigurationError(
                f"{cls}: min_value is {self.min_value} with scaling_type 'Logarithmic'; "
                "give a min_value above 0, or scaling_type 'Linear'"
            )
        if scaling == "ReverseLogarithmic" and not 0 <= self.min_value <= self.max_value < 1:
            raise ConfigurationError(
                f"{cls}: the range is {self.min_value} to {self.max_value} with scaling_type 'ReverseLogarithmic'; "
                "give a range with 0 <= min_value and max_value < 1, or scaling_type 'Linear'"
            )

    @property
    def resolved_scaling(self) -> str:
        """The scaling type, with "Auto" resolved.

        "Auto" is "Logarithmic" when `min_value` is above 0 and `max_value` at least 1000 times as large, otherwise
        "Linear".
        """
        if self.scaling_type != "Auto":
            return self.scaling_type
        wide = 0 < self.min_value * AUTO_LOGARITHMIC_RATIO <= self.max_value
        return "Logarithmic" if wide else "Linear"

    def is_valid(self, value: object) -> bool:
        """Whether `value` is a number of this kind, within the range."""
        try:
            return self.min_value <= self._number("value", value) <= self.max_value
        except ConfigurationError:
            return False

    def as_tuning_range(self, name: str) -> dict[str, str]:
        """The form that SageMaker's API gives it: everything as strings."""
        return {
            "Name": name,
            "MinValue": str(self.min_value),
            "MaxValue": str(self.max_value),
            "ScalingType": self.scaling_type,
        }

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for `range_from_json`."""
        return {
            "type": self.__name__,
            "min_value": self.min_value,
            "max_value": self.max_value,
            "scaling_type": self.scaling_type,
        }

    def __repr__(self) -> str:
        scaling = "" if self.scaling_type == "Auto" else f", {self.scaling_type!r}"
        return f"{type(self).__name__}({self.min_value!r}, {self.max_value!r}{scaling})"

    @staticmethod
    def _number(what: str, value: object) -> float:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, repr=False)
class ContinuousParameter(_NumericRange):
    """A hyperparameter with any value from `min_value` to `max_value`, both of them included.

    Args:
        min_value: the least value.
        max_value: the greatest value; may equal `min_value`.
        scaling_type: where to search most: "Linear" (alike everywhere), "Logarithmic" (alike in every order of
            magnitude; needs `min_value` above 0), "ReverseLogarithmic" (the same of the distance to 1; needs a range
            within 0 <= x < 1), or "Auto" ("Logarithmic" where `min_value` is above 0 and `max_value` at least 1000
            times as large, otherwise "Linear").

    Raises:
        ConfigurationError: a bound is not a finite number, or the scaling type does not fit the range.
    """

    __name__: ClassVar[str] = "Continuous"

    @staticmethod
    def cast_to_type(value: object) -> float:
        """The value as a float, from a number or from its string."""
        return _real("value", _parsed(value))

    def domain(self) -> Domain:
        """Its form in Ray Tune."""
        from ray import tune

        domain: Domain
        low, high = self._searched()
        if low == high:
            domain = tune.choice([low])  # Not every searcher takes an interval without width.
        elif self.resolved_scaling == "Linear":
            domain = tune.uniform(low, high)
        else:
            domain = tune.loguniform(low, high)
        return domain

    def decode(self, suggested: object) -> float:
        """The value that a point of `domain()` stands for."""
        value = _within(_real("the suggestion", suggested), *self._searched(), slack=0)
        if self.resolved_scaling == "ReverseLogarithmic":
            value = 1 - value
        return min(max(value, self.min_value), self.max_value)

    def _searched(self) -> tuple[float, float]:
        """The bounds of the domain. Tune has no reverse-logarithmic one: 1 - x is searched logarithmically."""
        if self.resolved_scaling == "ReverseLogarithmic":
            return 1 - self.max_value, 1 - self.min_value
        return self.min_value, self.max_value

    @staticmethod
    def _number(what: str, value: object) -> float:
        return _real(what, value)


@dataclass(frozen=True, slots=True, repr=False)
class IntegerParameter(_NumericRange):
    """A hyperparameter with any whole number from `min_value` to `max_value`, both of them included.

    Args:
        min_value: the least value.
        max_value: the greatest value; may equal `min_value`.
        scaling_type: where to search most: "Linear", "Logarithmic" (needs `min_value` above 0), or "Auto"
            ("Logarithmic" where `min_value` is above 0 and `max_value` at least 1000 times as large, otherwise
            "Linear").

    Raises:
        ConfigurationError: a bound is not a whole number, or the scaling type does not fit the range.
    """

    __name__: ClassVar[str] = "Integer"

    @staticmethod
    def cast_to_type(value: object) -> int:
        """The value as an int, from a whole number or from its string."""
        return _whole("value", _parsed(value))

    def domain(self) -> Domain:
        """Its form in Ray Tune."""
        from ray import tune

        domain: Domain
        low, high = int(self.min_value), int(self.max_value)
        if low == high:
            domain = tune.choice([low])  # Not every searcher takes an interval without width.
        elif self.resolved_scaling == "Linear":
            domain = tune.randint(low, high + 1)  # Tune leaves the upper bound of whole numbers out.
        else:
            domain = tune.lograndint(low, high + 1)
        return domain

    def decode(self, suggested: object) -> int:
        """The value that a point of `domain()` stands for."""
        low, high = int(self.min_value), int(self.max_value)
        # Tune draws whole numbers as floor(exp(...)): rounding can put one a step below its least value.
        value = _within(_whole("the suggestion", suggested), low, high, slack=1)
        return min(max(int(value), low), high)

    @staticmethod
    def _number(what: str, value: object) -> int:
        return _whole(what, value)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CategoricalParameter:
    """A hyperparameter with one of the given values, which keep their types: 1, 1.0, True and "1" are four values.

    Args:
        values: a list of None, booleans, numbers and strings; one of them alone stands for a list of one.

    Raises:
        ConfigurationError: there are no values, one of them twice, or one of another type.
    """

    __name__: ClassVar[str] = "Categorical"

    values: list[Scalar]

    def __init__(self, values: Sequence[Scalar] | Scalar) -> None:
        given: Any = values
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if given is None or isinstance(given, (str, Real, np.generic)):
            given = [given]
        # A set has no order of its own, and the order decides what a seed draws.
        if not isinstance(given, Sequence) or isinstance(given, (bytes, bytearray)):
            raise ConfigurationError(f"CategoricalParameter: values is {given!r}; give a list")
        checked = [_scalar(f"CategoricalParameter: values[{place}]", value) for place, value in enumerate(given)]
        if not checked:
            raise ConfigurationError(f"CategoricalParameter: values is {given!r}; give at least one value")
        for place, value in enumerate(checked):
            if any(_same(value, other) for other in checked[:place]):
                raise ConfigurationError(f"CategoricalParameter: values has {value!r} twice; give it once")
        object.__setattr__(self, "values", checked)

    def is_valid(self, value: object) -> bool:
        """Whether `value` is one of the values, of the same type."""
        return bool(self._own(value))

    def cast_to_type(self, value: object) -> Scalar:
        """The one of the values that `value` is, or is the string of.

        Raises:
            ConfigurationError: it is none of them.
        """
        found = self._own(value) or [own for own in self.values if str(own) == value]
        if found:
            return found[0]
        raise ConfigurationError(f"value is {value!r}; give {_either(self.values)}")

    def as_tuning_range(self, name: str) -> dict[str, str | list[str]]:
        """The form that SageMaker's API gives it: everything as strings."""
        return {"Name": name, "Values": [str(value) for value in self.values]}

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for `range_from_json`."""
        return {"type": self.__name__, "values": list(self.values)}

    def domain(self) -> Domain:
        """Its form in Ray Tune."""
        from ray import tune

        domain: Domain = tune.choice(list(range(len(self.values))) if self._by_position else list(self.values))
        return domain

    def decode(self, suggested: object) -> Scalar:
        """The value that a point of `domain()` stands for."""
        if self._by_position:
            position = _within(_whole("the suggestion", suggested), 0, len(self.values) - 1, slack=0)
            return self.values[int(position)]
        found = self._own(suggested)
        if found:
            return found[0]
        raise ConfigurationError(f"the suggestion is {suggested!r}; the range has {_either(self.values)}")

    def _own(self, value: object) -> list[Scalar]:
        """The value of this range that is the same, in type too; empty where there is none."""
        plain = _plain(value)
        return [own for own in self.values if _same(plain, own)]

    @property
    def _by_position(self) -> bool:
        """Whether some values are equal, as 1 and True are: searchers would take them for one another."""
        return len(set(self.values)) < len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CategoricalParameter):
            return NotImplemented
        return len(self.values) == len(other.values) and all(map(_same, self.values, other.values))

    def __repr__(self) -> str:
        return f"CategoricalParameter({self.values!r})"


ParameterRange: TypeAlias = ContinuousParameter | IntegerParameter | CategoricalParameter


def range_from_json(state: Mapping[str, Any]) -> ParameterRange:
    """The range that `to_json()` recorded, with its types and its scaling.

    Raises:
        ConfigurationError: the record names no type of range.
    """
    match state:
        case {"type": "Categorical", "values": values}:
            return CategoricalParameter(values)
        case {"type": "Continuous", "min_value": low, "max_value": high, "scaling_type": scaling}:
            return ContinuousParameter(low, high, scaling)
        case {"type": "Integer", "min_value": low, "max_value": high, "scaling_type": scaling}:
            return IntegerParameter(low, high, scaling)
    raise ConfigurationError(f"the record of a range is {dict(state)!r}; give what to_json() of a range returns")


def search_space(ranges: Mapping[str, ParameterRange]) -> dict[str, Domain]:
    """The ranges as Ray Tune's own domains, for any of its searchers.

    What a searcher suggests from it has to go through `decode`.

    Raises:
        ConfigurationError: a name or a range is not one.
    """
    for name, value in ranges.items():
        if not isinstance(name, str) or not name or "/" in name:
            raise ConfigurationError(
                f"hyperparameter_ranges has the name {name!r}; give a string without '/', Ray Tune's sign for nesting"
            )
        if not isinstance(value, ParameterRange):
            raise ConfigurationError(
                f"hyperparameter_ranges[{name!r}] is {value!r}; give a ContinuousParameter, an IntegerParameter or a "
                "CategoricalParameter, or put a fixed value into the trainer's hyperparameters"
            )
    return {name: value.domain() for name, value in ranges.items()}


def decode(ranges: Mapping[str, ParameterRange], suggested: Mapping[str, Any]) -> dict[str, Scalar]:
    """Hyperparameters from what a searcher suggested: within their ranges, and of their types.

    Raises:
        ConfigurationError: the suggestion is not from the space that `search_space` makes of these ranges.
    """
    if suggested.keys() != ranges.keys():
        raise ConfigurationError(
            f"the searcher suggested {sorted(suggested)} for the ranges {sorted(ranges)}; "
            "give the searcher the space that search_space() makes of them"
        )
    values: dict[str, Scalar] = {}
    for name, value in ranges.items():
        try:
            values[name] = value.decode(suggested[name])
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{name}: {error}; give the searcher the space that search_space() makes of the ranges"
            ) from error
    return values


def _real(what: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
            if math.isfinite(number):
                return number
    raise ConfigurationError(f"{what} is {value!r}; give a finite number")


def _whole(what: str, value: object) -> int:
    number = int(value) if isinstance(value, int) and not isinstance(value, bool) else _real(what, value)
    if number != int(number):
        raise ConfigurationError(f"{what} is {value!r}; give a whole number")
    if abs(number) > LARGEST_INTEGER:
        raise ConfigurationError(f"{what} is {value!r}; give a number from -2**53 to 2**53")
    return int(number)


def _parsed(value: object) -> object:
    """The number that a string says, if it says one."""
    if isinstance(value, str):
        for kind in (int, float):
            with suppress(ValueError):
                return kind(value)
    return value


def _plain(value: object) -> object:
    """A NumPy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _scalar(what: str, value: object) -> Scalar:
    plain = _plain(value)
    if isinstance(plain, float) and not math.isfinite(plain):
        raise ConfigurationError(f"{what} is {value!r}; give a finite number")
    # Exactly these types: an enum's member, though it is a string, would come back from the record as another type.
    if plain is None or type(plain) in (bool, int, float, str):
        return plain  # type: ignore[return-value]
    raise ConfigurationError(f"{what} is {value!r}; give None, a boolean, a number or a string")


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _within(value: float, low: float, high: float, *, slack: int) -> float:
    """The value, if it is off the bounds by no more than `slack` and what rounding explains."""
    slack_in_all = slack + 1e-9 * max(abs(low), abs(high))
    if not low - slack_in_all <= value <= high + slack_in_all:
        raise ConfigurationError(f"the suggestion is {value!r}, outside {low!r} to {high!r}")
    return value


def _either(values: Sequence[object]) -> str:
    *rest, last = map(repr, values)
    return f"{', '.join(rest)} or {last}" if rest else last


def _did_you_mean(given: object, known: Sequence[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(given).lower(), by_lower, n=1, cutoff=0.4)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""
