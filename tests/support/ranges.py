"""Ranges of every kind, as Hypothesis makes them up, and values that Ray Tune's samplers draw from one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    NormalParameter,
    ParameterRange,
    decode,
    search_space,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(1 - 2**64, 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"))
)


def bounds(numbers: st.SearchStrategy) -> st.SearchStrategy:
    return st.tuples(numbers, numbers).map(sorted)


WHOLE = st.integers(-(2**53), 2**53)
REAL = st.floats(-1e300, 1e300)
ABOVE_ZERO = st.floats(1e-300, 1e300)
BELOW_ONE = st.floats(0, 1, exclude_max=True)


@st.composite
def stepped(draw: st.DrawFn) -> ParameterRange:
    """Ranges of steps as they are written: few decimals, of any scaling that fits."""
    if draw(st.booleans()):
        low, step = draw(st.integers(-1000, 1000)), draw(st.integers(1, 1000))
        scalings = ["Auto", "Linear", *(["Logarithmic"] if low > 0 else [])]
        made = IntegerParameter, low, low + step * draw(st.integers(0, 500)), step
    else:
        places = 10 ** draw(st.integers(0, 6))
        first, by, size = draw(st.integers(-1000, 1000)), draw(st.integers(1, 1000)), draw(st.integers(0, 500))
        low, high = first / places, (first + by * size) / places
        scalings = ["Auto", "Linear", *(["Logarithmic"] if low > 0 else [])]
        scalings += ["ReverseLogarithmic"] if 0 <= low <= high < 1 else []
        made = ContinuousParameter, low, high, by / places
    kind, low, high, step = made
    return kind(low, high, draw(st.sampled_from(scalings)), step=step)


@st.composite
def normal(draw: st.DrawFn) -> ParameterRange:
    scaling = draw(st.sampled_from(["Linear", "Logarithmic"]))
    mean, deviation = draw(st.floats(-50, 50)), draw(st.floats(0.01, 10))
    cut = [value if draw(st.booleans()) else None for value in (mean - deviation, mean + deviation)]
    low, high = [None if value is None or scaling == "Linear" else math.exp(value) for value in cut]
    return NormalParameter(mean, deviation, scaling, min_value=low, max_value=high)


STEPPED = stepped() | st.builds(
    lambda mean, deviation, step: NormalParameter(mean, deviation, step=step),
    st.floats(-50, 50),
    st.floats(1, 10),
    st.sampled_from([0.01, 0.1, 0.25, 1, 3]),
)
NUMERIC = st.one_of(
    STEPPED,
    normal(),
    st.builds(lambda pair: ContinuousParameter(*pair), bounds(REAL)),
    st.builds(lambda pair: ContinuousParameter(*pair, "Linear"), bounds(REAL)),
    st.builds(lambda pair: ContinuousParameter(*pair, "Logarithmic"), bounds(ABOVE_ZERO)),
    st.builds(lambda pair: ContinuousParameter(*pair, "ReverseLogarithmic"), bounds(BELOW_ONE)),
    st.builds(lambda pair: IntegerParameter(*pair), bounds(WHOLE)),
    st.builds(lambda pair: IntegerParameter(*pair, "Logarithmic"), bounds(st.integers(1, 2**53))),
)
CATEGORICAL = st.lists(SCALARS, min_size=1, max_size=6, unique_by=lambda value: (type(value), value)).map(
    CategoricalParameter
)
RANGES = NUMERIC | CATEGORICAL


def draw(ranges: dict[str, ParameterRange], seed: int, size: int = 1) -> list[dict[str, Any]]:
    """Suggestions drawn with Ray Tune's own samplers, decoded."""
    stream = np.random.default_rng(seed)
    space = search_space(ranges)
    return [
        decode(ranges, {name: domain.sample(random_state=stream) for name, domain in space.items()})
        for _ in range(size)
    ]
