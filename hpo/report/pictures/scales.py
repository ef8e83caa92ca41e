"""Positions of hyperparameter values on the scale of their search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hpo.ranges import CategoricalParameter, ParameterRange


def fixed(bounds: ParameterRange) -> bool:
    """Whether there was nothing to choose."""
    if isinstance(bounds, CategoricalParameter):
        return len(bounds.values) < 2
    return bounds.min_value == bounds.max_value


def position(bounds: ParameterRange, value: Any) -> float:
    """A value as a number that is searched evenly: a category's place, or a number or its logarithm."""
    if isinstance(bounds, CategoricalParameter):
        kinds = [(type(own), own) for own in bounds.values]
        return kinds.index((type(value), value))
    if bounds.resolved_scaling == "Logarithmic":
        return math.log10(value)
    if bounds.resolved_scaling == "ReverseLogarithmic":
        return -math.log10(1 - value)
    return float(value)


def has_all(bounds: Mapping[str, ParameterRange], hyperparameters: Mapping[str, Any]) -> bool:
    """Whether a trial has every hyperparameter of the ranges, but for those whose condition it may not meet."""
    return all(name in hyperparameters or each.when for name, each in bounds.items())
