"""Corners: values and configurations at the ends of ranges, to ask a trainer about before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hpo.ranges.categorical import CategoricalParameter
from hpo.ranges.conditions import present, required
from hpo.ranges.kinds import ParameterRange
from hpo.ranges.numeric import IntegerParameter
from hpo.ranges.values import Scalar


def extremes(bounds: ParameterRange) -> list[tuple[Any, Any]]:
    """Values to try of a range, each with the next that may be drawn instead of it, or None."""
    if isinstance(bounds, CategoricalParameter):
        return [(value, None) for value in bounds.values]
    low, high = bounds.min_value, bounds.max_value
    if isinstance(bounds, IntegerParameter) or bounds.size is not None:
        return [(low, None), (high, None)]
    return [(low, math.nextafter(low, high)), (high, math.nextafter(high, low))]


def corners(ranges: Mapping[str, ParameterRange]) -> Iterator[dict[str, Scalar]]:
    """Configurations to try: one of first values, and for each condition one that meets it."""
    first = {}
    for name, bounds in ranges.items():
        value, inside = extremes(bounds)[0]
        first[name] = value if inside is None else inside
    conditions = [required(ranges, name) for name, bounds in ranges.items() if bounds.when]
    for needed in [{}, *conditions]:
        values = {**first, **{name: accepted[0] for name, accepted in needed.items()}}
        yield {name: values[name] for name in present(ranges, values)}
