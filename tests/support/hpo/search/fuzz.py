"""Random values for a job's data and options."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.extra import numpy as numpy_st

from hpo.record.tables import encode
from tests.support.properties import examples
from trainers import WarmbandError
from trainers.channels import Channel

T = TypeVar("T")
quick = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])

SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 40),
    st.integers(),
    st.floats(),
    st.floats(0, 1),
    st.text(max_size=5),
    st.sampled_from(["", "auto", "Auto", "Linear", "Logarithmic", "exact", "hist", "1", "0.5", "nan", "1e400"]),
    st.binary(max_size=3),
    st.sampled_from([np.float32(0.1), np.int64(3), np.bool_(True), np.array([1, 2]), np.array([])]),
    st.builds(object),
)
KEY = SCALAR.filter(lambda value: not isinstance(value, np.ndarray))
ANYTHING = SCALAR | st.lists(SCALAR, max_size=3) | st.dictionaries(KEY, SCALAR, max_size=2)


def ours(make: Callable[[], T]) -> T | None:
    """Call `make`; return None for a Warmband error with a message. Any other error fails the test."""
    try:
        return make()
    except WarmbandError as refused:
        said = str(refused)
    assert len(said) > 20
    return None


ARRAYS = numpy_st.arrays(
    st.one_of(
        numpy_st.scalar_dtypes(),
        st.sampled_from(["f4", "f8", "i8", "u1", "?", "O"]).map(np.dtype),
    ),
    numpy_st.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


def look_and_read(make: Callable[[], Channel]) -> None:
    channel = ours(make)
    if channel is not None:
        json.dumps(encode(channel.describe()), allow_nan=False)
        ours(channel.look)
        table = ours(channel.read_whole)
        if table is not None:
            assert len(table.labels) == len(table.features) > 0
            assert np.isfinite(table.labels).all()
            if isinstance(table.features, np.ndarray):
                assert not np.isinf(table.features).any()
