"""Categorical ranges: lists of values that keep their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from hpo.ranges.values import (
    Scalar,
    When,
    condition,
    either,
    same,
    scalar,
    when_as_strings,
    when_to_json,
    whole,
    within,
)
from trainers.errors import ConfigurationError
from trainers.plain import plain_scalar

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain


MOST_CATEGORIES = 10_000
"""Values of one range."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CategoricalParameter:
    """A hyperparameter with one of the given values, which keep their types: 1, 1.0, True and "1" are four values.

    Args:
        values: a list of None, booleans, numbers and strings; one of them alone stands for a list of one.
        when: values of other hyperparameters, by name, with which alone there is this one; None is always.

    Raises:
        ConfigurationError: there are no values or too many, one of them twice, or one of another type.
    """

    __name__: ClassVar[str] = "Categorical"

    values: list[Scalar]
    when: When

    def __init__(self, values: Sequence[Scalar] | Scalar, *, when: When | None = None) -> None:
        choices: Any = values
        if hasattr(choices, "tolist"):
            choices = choices.tolist()
        if choices is None or isinstance(choices, str | Real):
            choices = [choices]
        # A set has no order of its own, and the order decides what a seed draws.
        if not isinstance(choices, Sequence) or isinstance(choices, (bytes, bytearray)):
            raise ConfigurationError(f"CategoricalParameter: values is {choices!r}; give a list")
        if len(choices) > MOST_CATEGORIES:
            raise ConfigurationError(
                f"CategoricalParameter: values has {len(choices):,} values; give at most {MOST_CATEGORIES:,}, or a "
                "range of numbers"
            )
        checked = [scalar(f"CategoricalParameter: values[{place}]", value) for place, value in enumerate(choices)]
        if not checked:
            raise ConfigurationError(f"CategoricalParameter: values is {choices!r}; give at least one value")
        seen: set[tuple[type, Scalar]] = set()
        for value in checked:
            if (key := (type(value), value)) in seen:
                raise ConfigurationError(f"CategoricalParameter: values has {value!r} twice; give it once")
            seen.add(key)
        object.__setattr__(self, "values", checked)
        object.__setattr__(self, "when", condition("CategoricalParameter", when))

    def is_valid(self, value: object) -> bool:
        """Whether `value` is one of the values, of the same type."""
        return bool(self._own(value))

    def cast_to_type(self, value: object) -> Scalar:
        """The one of the values that `value` is, or is the string of.

        Raises:
            ConfigurationError: it is none of them.
        """
        matches = self._own(value) or [own for own in self.values if str(own) == value]
        if matches:
            return matches[0]
        raise ConfigurationError(f"value is {value!r}; give {either(self.values)}")

    def as_tuning_range(self, name: str) -> dict[str, Any]:
        """The form that SageMaker's API gives it: everything as strings."""
        return {"Name": name, "Values": [str(value) for value in self.values], **when_as_strings(self.when)}

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for `range_from_json`."""
        return {"type": self.__name__, "values": list(self.values), **when_to_json(self.when)}

    def position(self, value: object) -> float:
        """Where a value lies if each has an equal piece of 0 to 1: in the middle of its own."""
        own = self.cast_to_type(value)
        return (next(i for i, other in enumerate(self.values) if same(own, other)) + 0.5) / len(self.values)

    def at(self, position: float) -> Scalar:
        """The value whose piece a position from 0 to 1 is in."""
        return self.values[self.index(position)]

    def index(self, position: float) -> int:
        """Which of the values a position from 0 to 1 is in the piece of."""
        return min(max(int(position * len(self.values)), 0), len(self.values) - 1)

    def domain(self) -> Domain:
        """Its form in Ray Tune."""
        from ray import tune

        domain: Domain = tune.choice(self.points())
        return domain

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values)

    def members(self) -> Sequence[Scalar]:
        """Every value, in their order."""
        return self.values

    def points(self) -> Sequence[Scalar]:
        """Every point of `domain()`, in the order of the values."""
        return list(range(len(self.values))) if self._by_position else list(self.values)

    def encode(self, value: object) -> object:
        """The point of `domain()` that stands for a value."""
        own = self.cast_to_type(value)
        return self.points()[next(i for i, other in enumerate(self.values) if same(own, other))]

    def decode(self, suggested: object) -> Scalar:
        """The value that a point of `domain()` stands for."""
        if self._by_position:
            position = within(whole("the suggestion", suggested), 0, len(self.values) - 1, slack=0)
            return self.values[int(position)]
        matches = self._own(suggested)
        if matches:
            return matches[0]
        raise ConfigurationError(f"the suggestion is {suggested!r}; the range has {either(self.values)}")

    def _own(self, value: object) -> list[Scalar]:
        """The value of this range that is the same, in type too; empty where there is none."""
        wanted = plain_scalar(value)
        return [own for own in self.values if same(wanted, own)]

    @property
    def _by_position(self) -> bool:
        """Whether some values are equal, as 1 and True are: searchers would take them for one another."""
        return len(set(self.values)) < len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CategoricalParameter):
            return NotImplemented
        alike = len(self.values) == len(other.values) and all(map(same, self.values, other.values))
        return alike and self.when == other.when

    def __repr__(self) -> str:
        when = f", when={self.when!r}" if self.when else ""
        return f"CategoricalParameter({self.values!r}{when})"
