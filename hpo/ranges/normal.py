"""Normal ranges: numbers around a mean, or around it in orders of magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar

from hpo.ranges.numeric_range import NumericRange
from hpo.ranges.steps import exactly
from hpo.ranges.values import When, parsed, real
from trainers.errors import ConfigurationError

FURTHEST = 4.0
"""Standard deviations from the mean, beyond which one number in 16,000 would lie: none is drawn there."""


@dataclass(frozen=True, slots=True, repr=False, init=False)
class NormalParameter(NumericRange):
    """A hyperparameter drawn from a normal distribution, cut off four standard deviations from its mean.

    Args:
        mean: of the values; with scaling "Logarithmic", of their natural logarithm.
        standard_deviation: above 0; with scaling "Logarithmic", of the natural logarithm.
        scaling_type: "Linear" for a normal distribution, "Logarithmic" for a log-normal one.
        min_value: no value is below; None cuts nothing more off.
        max_value: no value is above; None cuts nothing more off.
        step: values are whole multiples of it, as they are written; None is any value.
        when: see `ContinuousParameter`; None is always.

    Attributes:
        min_value: the least value.
        max_value: the greatest value.

    Raises:
        ConfigurationError: an argument is not a finite number, or leaves no value.
    """

    __name__: ClassVar[str] = "Normal"
    scaling_types: ClassVar[tuple[str, ...]] = ("Linear", "Logarithmic")

    mean: float = field(kw_only=True)
    standard_deviation: float = field(kw_only=True)

    def __init__(
        self,
        mean: float,
        standard_deviation: float,
        scaling_type: str = "Linear",
        *,
        min_value: float | None = None,
        max_value: float | None = None,
        step: float | None = None,
        when: When | None = None,
    ) -> None:
        given: dict[str, Any] = {"mean": mean, "standard_deviation": standard_deviation, "step": step}
        for name, value in given.items():
            number = None if value is None and name == "step" else real(f"NormalParameter: {name}", value)
            object.__setattr__(self, name, number)
        if self.standard_deviation <= 0:
            raise ConfigurationError(
                f"NormalParameter: standard_deviation is {self.standard_deviation}; give a number above 0"
            )
        object.__setattr__(self, "scaling_type", scaling_type)
        object.__setattr__(self, "when", when)
        object.__setattr__(self, "min_value", self._bound("min_value", min_value, -1))
        object.__setattr__(self, "max_value", self._bound("max_value", max_value, 1))
        if self.min_value > self.max_value:
            raise ConfigurationError(
                f"NormalParameter: min_value is {min_value}, max_value {max_value} and step {step}, which leaves no "
                f"value of mean {mean} and standard_deviation {standard_deviation}; give others, or none"
            )
        self.__post_init__()

    def _bound(self, name: str, given: float | None, side: int) -> float:
        """An end of the range: the one that is given, or the last value of the distribution if that is nearer."""
        end = self.mean + side * FURTHEST * self.standard_deviation
        try:
            end = real("", math.exp(end) if self.scaling_type == "Logarithmic" else end)
        except (OverflowError, ConfigurationError):
            raise ConfigurationError(
                f"NormalParameter: mean is {self.mean} and standard_deviation {self.standard_deviation}"
                f"{', of the natural logarithm' if self.scaling_type == 'Logarithmic' else ''}, which comes to numbers "
                "larger than a float can say; give smaller ones"
            ) from None
        if given is not None:
            end = side * min(side * end, side * real(f"NormalParameter: {name}", given))
        if self.step is None or self.step <= 0:
            return end
        step = exactly(self.step)
        return float(step * (math.ceil(exactly(end) / step) if side < 0 else math.floor(exactly(end) / step)))

    @staticmethod
    def cast_to_type(value: object) -> float:
        """The value as a float, from a number or from its string."""
        return real("value", parsed(value))

    def as_tuning_range(self, name: str) -> dict[str, Any]:
        """The form that SageMaker's API gives a continuous range, and beyond it the distribution."""
        return {
            **NumericRange.as_tuning_range(self, name),
            "Mean": str(self.mean),
            "StandardDeviation": str(self.standard_deviation),
        }

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for `range_from_json`."""
        return {**NumericRange.to_json(self), "mean": self.mean, "standard_deviation": self.standard_deviation}

    def __repr__(self) -> str:
        scaling = "" if self.scaling_type == "Linear" else f", {self.scaling_type!r}"
        bounds = f", min_value={self.min_value!r}, max_value={self.max_value!r}"
        return f"NormalParameter({self.mean!r}, {self.standard_deviation!r}{scaling}{bounds}{self._named()})"

    def _scale(self, value: float) -> float:
        """The share of the distribution below a value."""
        if self.scaling_type == "Logarithmic":
            value = math.log(value)
        return NormalDist(self.mean, self.standard_deviation).cdf(value)

    def _unscale(self, scaled: float) -> float:
        if not 0 < scaled < 1:
            return self.min_value if scaled <= 0 else self.max_value
        value = NormalDist(self.mean, self.standard_deviation).inv_cdf(scaled)
        return math.exp(value) if self.scaling_type == "Logarithmic" else value

    @property
    def _below(self) -> float:
        """Numbers are rounded to the nearest step."""
        return 0.5

    @property
    def _by_position(self) -> bool:
        """Always: searchers know no normal distribution, or each another."""
        return True
