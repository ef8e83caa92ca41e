"""Numeric ranges: bounds and scaling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hpo.ranges.values import either, real, whole, within
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain

SCALING_TYPES = ("Auto", "Linear", "Logarithmic", "ReverseLogarithmic")

# From this ratio of max_value to min_value on, scaling "Auto" is logarithmic.
AUTO_LOGARITHMIC_RATIO = 1000


@dataclass(frozen=True, slots=True, repr=False)
class _NumericRange:
    """Base of ranges of numbers."""

    __name__: ClassVar[str]
    _drawn: ClassVar[tuple[str, str, int]]
    """Ray Tune's functions, linear and logarithmic, and what the upper bound is given, which `randint` leaves out."""

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
        scaling: Any = self.scaling_type
        known = SCALING_TYPES if self.__name__ == "Continuous" else SCALING_TYPES[:-1]
        if isinstance(scaling, str) and scaling == "ReverseLogarithmic" and scaling not in known:
            raise ConfigurationError(
                f"{cls}: scaling_type is {scaling!r}, which only a ContinuousParameter has; give {either(known)}"
            )
        if not isinstance(scaling, str) or scaling not in known:
            raise ConfigurationError(
                f"{cls}: scaling_type is {scaling!r}; give {either(known)}{did_you_mean(scaling, known, cutoff=0.4)}"
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

    def _number(self, what: str, value: object) -> float:
        return whole(what, value) if self.__name__ == "Integer" else real(what, value)

    def position(self, value: object) -> float:
        """Where a value lies in the range as it is searched, from 0 to 1."""
        low, high = (self._scale(bound) for bound in (self.min_value, self.max_value))
        return 0.5 if low == high else min(1.0, max(0.0, (self._scale(real("value", value)) - low) / (high - low)))

    def at(self, position: float) -> float:
        """The value at a position from 0 to 1; the nearest whole number where the range has no others."""
        low, high = (self._scale(bound) for bound in (self.min_value, self.max_value))
        value = self._unscale(low * (1 - position) + high * position)  # Exact at both ends.
        value = round(value) if self.__name__ == "Integer" else value
        return min(max(value, self.min_value), self.max_value)

    def _scale(self, value: float) -> float:
        """A value on the scale on which all of the range is searched alike."""
        match self.resolved_scaling:
            case "Logarithmic":
                return math.log(value)
            case "ReverseLogarithmic":
                return -math.log1p(-value)
        return value

    def _unscale(self, scaled: float) -> float:
        match self.resolved_scaling:
            case "Logarithmic":
                return math.exp(scaled)
            case "ReverseLogarithmic":
                return -math.expm1(-scaled)
        return scaled

    def domain(self) -> Domain:
        """Its form in Ray Tune."""
        from ray import tune

        low, high = self._searched()
        linear, logarithmic, beyond = self._drawn
        draw = getattr(tune, linear if self.resolved_scaling == "Linear" else logarithmic)
        # Not every searcher takes an interval without width.
        domain: Domain = tune.choice([low]) if low == high else draw(low, high + beyond)
        return domain

    def _searched(self) -> tuple[float, float]:
        """The bounds of the domain."""
        return self.min_value, self.max_value


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
    _drawn: ClassVar[tuple[str, str, int]] = ("uniform", "loguniform", 0)

    @staticmethod
    def cast_to_type(value: object) -> float:
        """The value as a float, from a number or from its string."""
        return real("value", _parsed(value))

    def encode(self, value: object) -> float:
        """The point of `domain()` that stands for a value."""
        number = real("value", value)
        return 1 - number if self.resolved_scaling == "ReverseLogarithmic" else number

    def decode(self, suggested: object) -> float:
        """The value that a point of `domain()` stands for."""
        value = within(real("the suggestion", suggested), *self._searched(), slack=0)
        if self.resolved_scaling == "ReverseLogarithmic":
            value = 1 - value
        return min(max(value, self.min_value), self.max_value)

    def _searched(self) -> tuple[float, float]:
        """The bounds of the domain. Tune has no reverse-logarithmic one: 1 - x is searched logarithmically."""
        if self.resolved_scaling == "ReverseLogarithmic":
            return 1 - self.max_value, 1 - self.min_value
        return self.min_value, self.max_value


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
    _drawn: ClassVar[tuple[str, str, int]] = (
        "randint",
        "lograndint",
        1,
    )  # Tune leaves the upper bound of whole numbers out.

    @staticmethod
    def cast_to_type(value: object) -> int:
        """The value as an int, from a whole number or from its string."""
        return whole("value", _parsed(value))

    @staticmethod
    def encode(value: object) -> int:
        """The point of `domain()` that stands for a value."""
        return whole("value", value)

    def decode(self, suggested: object) -> int:
        """The value that a point of `domain()` stands for."""
        low, high = int(self.min_value), int(self.max_value)
        # Tune draws whole numbers as floor(exp(...)): rounding can put one a step below its least value.
        value = within(whole("the suggestion", suggested), low, high, slack=1)
        return min(max(int(value), low), high)

    def points(self) -> Sequence[int]:
        """Every value, rising."""
        return range(int(self.min_value), int(self.max_value) + 1)


def _parsed(value: object) -> object:
    """The number that a string says, if it says one."""
    if isinstance(value, str):
        for kind in (int, float):
            with suppress(ValueError):
                return kind(value)
    return value
