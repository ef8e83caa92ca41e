"""A job file's ranges: typed, checked, and in the Python API's form."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hpo.job_file.known_keys import Give, Strict
from hpo.job_file.wording import about
from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, NormalParameter, ParameterRange

When = Annotated[
    dict[str, Any] | None,
    Field(
        description="values of other hyperparameters, by name, with which alone there is this one; without them the "
        "trainer's own value holds; null is always"
    ),
    Give("names of hyperparameters and their values, such as {optimizer: [sgd]}"),
]


class _Range(Strict):
    """Base of ranges, which are checked where they stand."""

    def parameter(self) -> ParameterRange:
        """In the Python API's form."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check(self) -> Self:
        with about():
            self.parameter()
        return self


class ContinuousRange(_Range):
    """Any number between two."""

    type: Literal["continuous"] = Field(description="any number from min to max")
    min: float = Field(description="the least value")
    max: float = Field(description="the greatest value")
    scaling: Literal["Auto", "Linear", "Logarithmic", "ReverseLogarithmic"] = Field(
        "Auto",
        description="where to search most: Linear, alike everywhere; Logarithmic, alike in every order of magnitude "
        "(needs min above 0); ReverseLogarithmic, the same of the distance to 1 (needs 0 <= min and max < 1); Auto, "
        "Logarithmic where max is at least 1000 times min",
    )
    step: float | None = Field(
        None, description="values are this far from one another, from min to max; null is any number"
    )
    when: When = None

    def parameter(self) -> ParameterRange:
        """In the Python API's form."""
        return ContinuousParameter(self.min, self.max, self.scaling, step=self.step, when=self.when or {})


class IntegerRange(_Range):
    """Any whole number between two."""

    type: Literal["integer"] = Field(description="any whole number from min to max")
    min: int = Field(description="the least value")
    max: int = Field(description="the greatest value, which is included")
    scaling: Literal["Auto", "Linear", "Logarithmic"] = Field("Auto", description="as for a continuous range")
    step: int | None = Field(None, description="as for a continuous range; null is any whole number")
    when: When = None

    def parameter(self) -> ParameterRange:
        """In the Python API's form."""
        return IntegerParameter(self.min, self.max, self.scaling, step=self.step, when=self.when or {})


class NormalRange(_Range):
    """Numbers of a normal distribution."""

    type: Literal["normal"] = Field(description="numbers around a mean, four standard deviations at most from it")
    mean: float = Field(description="their mean; with scaling Logarithmic, that of their natural logarithms")
    standard_deviation: float = Field(
        description="their standard deviation; with scaling Logarithmic, that of their natural logarithms"
    )
    scaling: Literal["Linear", "Logarithmic"] = Field(
        "Linear", description="Linear is a normal distribution, Logarithmic a log-normal one"
    )
    min: float | None = Field(None, description="no value is below; null cuts nothing more off")
    max: float | None = Field(None, description="no value is above; null cuts nothing more off")
    step: float | None = Field(None, description="values are whole multiples of it; null is any number")
    when: When = None

    def parameter(self) -> ParameterRange:
        """In the Python API's form."""
        return NormalParameter(
            self.mean,
            self.standard_deviation,
            self.scaling,
            min_value=self.min,
            max_value=self.max,
            step=self.step,
            when=self.when or {},
        )


class CategoricalRange(_Range):
    """A choice among values, whose types are kept."""

    type: Literal["categorical"] = Field(description="one of some values")
    values: list[Any] = Field(description="the values: text, numbers, true, false or null; 1 and '1' are two")
    when: When = None

    def parameter(self) -> ParameterRange:
        """In the Python API's form."""
        return CategoricalParameter(self.values, when=self.when or {})


Range = Annotated[
    ContinuousRange | IntegerRange | NormalRange | CategoricalRange,
    Field(discriminator="type"),
    Give("a range such as {type: continuous, min: 0, max: 1}"),
]
