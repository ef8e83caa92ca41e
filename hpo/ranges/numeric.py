"""Ranges between two numbers: any number, or any whole one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hpo.ranges.numeric_range import SCALING_TYPES, NumericRange
from hpo.ranges.values import parsed, real, whole, within


@dataclass(frozen=True, slots=True, repr=False)
class ContinuousParameter(NumericRange):
    """A hyperparameter with any value from `min_value` to `max_value`, both of them included.

    Args:
        min_value: the least value.
        max_value: the greatest value; may equal `min_value`.
        scaling_type: where to search most: "Linear" (alike everywhere), "Logarithmic" (alike in every order of
            magnitude; needs `min_value` above 0), "ReverseLogarithmic" (the same of the distance to 1; needs a range
            within 0 <= x < 1), or "Auto" ("Logarithmic" where `min_value` is above 0 and `max_value` at least 1000
            times as large, otherwise "Linear").
        step: between one value and the next, of values that come out as they are written: 0.3, and not
            0.30000000000000004. `max_value` is a whole number of steps from `min_value`. None is any value between.
        when: values of other hyperparameters, by name, with which alone there is this one, as in
            `when={"optimizer": ["sgd"]}`. Where there is not, the trainer's own value holds.

    Raises:
        ConfigurationError: a bound is not a finite number, or scaling type or step do not fit the range.
    """

    __name__: ClassVar[str] = "Continuous"

    @staticmethod
    def cast_to_type(value: object) -> float:
        """The value as a float, from a number or from its string."""
        return real("value", parsed(value))

    def _point(self, value: object) -> float:
        number = real("value", value)
        return 1 - number if self.resolved_scaling == "ReverseLogarithmic" else number

    def _of_point(self, suggested: object) -> float:
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
class IntegerParameter(NumericRange):
    """A hyperparameter with any whole number from `min_value` to `max_value`, both of them included.

    Args:
        min_value: the least value.
        max_value: the greatest value; may equal `min_value`.
        scaling_type: where to search most: "Linear", "Logarithmic" (needs `min_value` above 0), or "Auto"
            ("Logarithmic" where `min_value` is above 0 and `max_value` at least 1000 times as large, otherwise
            "Linear").
        step: between one value and the next, a whole number; `max_value` is a whole number of steps from `min_value`.
            None is any whole number between.
        when: see `ContinuousParameter`.

    Raises:
        ConfigurationError: a bound is not a whole number, or scaling type or step do not fit the range.
    """

    __name__: ClassVar[str] = "Integer"
    scaling_types: ClassVar[tuple[str, ...]] = SCALING_TYPES[:-1]
    _drawn: ClassVar[tuple[str, str, int]] = (
        "randint",
        "lograndint",
        1,
    )  # Tune leaves the upper bound of whole numbers out.

    @staticmethod
    def cast_to_type(value: object) -> int:
        """The value as an int, from a whole number or from its string."""
        return whole("value", parsed(value))

    def _of_point(self, suggested: object) -> int:
        low, high = int(self.min_value), int(self.max_value)
        # Tune draws whole numbers as floor(exp(...)): rounding can put one a step below its least value.
        value = within(whole("the suggestion", suggested), low, high, slack=1)
        return min(max(int(value), low), high)

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.members())

    def members(self) -> Sequence[int]:
        """Every value, rising."""
        return range(int(self.min_value), int(self.max_value) + 1, 1 if self.step is None else int(self.step))
