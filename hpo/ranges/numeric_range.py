"""Base of ranges of numbers: bounds, scaling and steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from hpo.ranges.steps import FINEST, MOST_STEPS, Steps, exactly, steps_between
from hpo.ranges.values import Scalar, When, condition, either, real, when_as_strings, when_to_json, whole, within
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain

SCALING_TYPES = ("Auto", "Linear", "Logarithmic", "ReverseLogarithmic")

# From this ratio of max_value to min_value on, scaling "Auto" is logarithmic.
AUTO_LOGARITHMIC_RATIO = 1000


@dataclass(frozen=True, slots=True, repr=False)
class NumericRange:
    """Base of ranges of numbers."""

    __name__: ClassVar[str]
    scaling_types: ClassVar[tuple[str, ...]] = SCALING_TYPES
    _drawn: ClassVar[tuple[str, str, int]] = ("uniform", "loguniform", 0)
    """Ray Tune's functions, linear and logarithmic, and what the upper bound is given, which `randint` leaves out."""

    min_value: float
    max_value: float
    scaling_type: str = "Auto"
    step: float | None = field(default=None, kw_only=True)
    when: When = field(default_factory=dict, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        cls = type(self).__name__
        for name in ("min_value", "max_value"):
            object.__setattr__(self, name, self._number(f"{cls}: {name}", getattr(self, name)))
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
        if self.step is not None:
            self._check_step(cls)
        object.__setattr__(self, "when", condition(cls, self.when))

    def _check_scaling(self, cls: str) -> None:
        scaling: Any = self.scaling_type
        known = self.scaling_types
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

    def _check_step(self, cls: str) -> None:
        step = self._number(f"{cls}: step", self.step)
        object.__setattr__(self, "step", step)
        if step <= 0:
            raise ConfigurationError(f"{cls}: step is {step}; give a number above 0")
        low, high = exactly(self.min_value), exactly(self.max_value)
        count = (high - low) / exactly(step)
        if count.denominator != 1:
            below, above = (float(low + place * exactly(step)) for place in (math.floor(count), math.ceil(count)))
            raise ConfigurationError(
                f"{cls}: max_value is {self.max_value}, which is no whole number of steps of {step} from "
                f"{self.min_value}; give {self._number('', below)} or {self._number('', above)}"
            )
        largest = max(abs(self.min_value), abs(self.max_value))
        if count > MOST_STEPS or (count and step < largest / FINEST) or not math.isfinite(largest + step):
            raise ConfigurationError(
                f"{cls}: step is {step} from {self.min_value} to {self.max_value}, whose values floats do not tell "
                "apart well; give a larger step, or a narrower range"
            )

    @property
    def _steps(self) -> Steps:
        """The values, where they lie a step apart."""
        assert self.step is not None
        return steps_between(self.min_value, self.max_value, self.step)

    @property
    def size(self) -> int | None:
        """How many values there are; None where there is no end of them."""
        if self.step is not None:
            return self._steps.size
        return 1 if self.min_value == self.max_value else None

    def members(self) -> Sequence[Scalar]:
        """Every value, rising, of a range that has a `size`."""
        if self.step is None:
            return [self.min_value]
        return [self._steps.value(place) for place in range(self._steps.size)]

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
        """Whether `value` is a number of this kind, within the range; of steps, but for what rounding explains."""
        try:
            number = self._number("value", value)
        except ConfigurationError:
            return False
        if self.step is None:
            return self.min_value <= number <= self.max_value
        return abs(number - self._steps.value(self._steps.nearest(number))) <= 1e-9 * self.step

    def as_tuning_range(self, name: str) -> dict[str, Any]:
        """The form that SageMaker's API gives it: everything as strings."""
        return {
            "Name": name,
            "MinValue": str(self.min_value),
            "MaxValue": str(self.max_value),
            "ScalingType": self.scaling_type,
            **({} if self.step is None else {"Step": str(self.step)}),
            **when_as_strings(self.when),
        }

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for `range_from_json`."""
        return {
            "type": self.__name__,
            "min_value": self.min_value,
            "max_value": self.max_value,
            "scaling_type": self.scaling_type,
            **({} if self.step is None else {"step": self.step}),
            **when_to_json(self.when),
        }

    def __repr__(self) -> str:
        scaling = "" if self.scaling_type == "Auto" else f", {self.scaling_type!r}"
        return f"{type(self).__name__}({self.min_value!r}, {self.max_value!r}{scaling}{self._named()})"

    def _named(self) -> str:
        """The arguments that are given by name, as `repr` has them."""
        step = "" if self.step is None else f", step={self.step!r}"
        return f"{step}, when={self.when!r}" if self.when else step

    def _number(self, what: str, value: object) -> float:
        return whole(what, value) if self.__name__ == "Integer" else real(what, value)

    def position(self, value: object) -> float:
        """Where a value lies in the range as it is searched, from 0 to 1; of steps, in the middle of its piece."""
        number = real("value", value)
        low, high = (self._scale(bound) for bound in self._pieces())
        if low == high:
            return 0.5
        if self.step is None:
            return min(1.0, max(0.0, (self._scale(number) - low) / (high - low)))
        begin = self._steps.value(self._steps.nearest(number)) - self._below * self.step
        middle = (self._scale(begin) + self._scale(begin + self.step)) / 2
        return min(1.0, max(0.0, (middle - low) / (high - low)))

    def at(self, position: float) -> float:
        """The value at a position from 0 to 1; the nearest whole number, or the step in whose piece it is."""
        begin, end = self._pieces()
        low, high = self._scale(begin), self._scale(end)
        value = self._unscale(low * (1 - position) + high * position)  # Exact at both ends.
        if self.step is not None:
            return self._steps.value(math.floor((value - begin) / self.step))
        value = round(value) if self.__name__ == "Integer" else value
        return min(max(value, self.min_value), self.max_value)

    def _pieces(self) -> tuple[float, float]:
        """The bounds of what is searched: of steps, each value has a piece of the range as long as a step."""
        if self.step is None:
            return self.min_value, self.max_value
        return self.min_value - self._below * self.step, self.max_value + (1 - self._below) * self.step

    @property
    def _below(self) -> float:
        """How much of a value's piece lies below it; logarithms have no room below the least, or above the greatest."""
        return 1.0 if self.resolved_scaling == "ReverseLogarithmic" else 0.0

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

    @property
    def _by_position(self) -> bool:
        """Whether searchers see positions, of which each value has its share, instead of values."""
        return self.step is not None

    def domain(self) -> Domain:
        """Its form in Ray Tune."""
        from ray import tune

        domain: Domain
        if self._by_position:
            domain = tune.uniform(0, 1)
            return domain
        low, high = self._searched()
        linear, logarithmic, beyond = self._drawn
        draw = getattr(tune, linear if self.resolved_scaling == "Linear" else logarithmic)
        # Not every searcher takes an interval without width.
        domain = tune.choice([low]) if low == high else draw(low, high + beyond)
        return domain

    def encode(self, value: object) -> float:
        """The point of `domain()` that stands for a value."""
        return self.position(value) if self._by_position else self._point(value)

    def decode(self, suggested: object) -> float:
        """The value that a point of `domain()` stands for."""
        if self._by_position:
            return self.at(within(real("the suggestion", suggested), 0, 1, slack=0))
        return self._of_point(suggested)

    def _point(self, value: object) -> float:
        return self._number("value", value)

    def _of_point(self, suggested: object) -> float:
        raise NotImplementedError

    def _searched(self) -> tuple[float, float]:
        """The bounds of the domain."""
        return self.min_value, self.max_value
