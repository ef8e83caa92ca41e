"""How ranges scale: what is drawn where, by steps too, and around the mean of a normal distribution."""

from __future__ import annotations

import json
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given

from hpo.ranges import ContinuousParameter, IntegerParameter, NormalParameter, ParameterRange
from tests.support.ranges import STEPPED, draw


@pytest.mark.parametrize(
    ("made", "scaling"),
    [
        (ContinuousParameter(0.001, 1), "Logarithmic"),
        (ContinuousParameter(0.0011, 1), "Linear"),
        (ContinuousParameter(0, 1e9), "Linear"),
        (ContinuousParameter(-1, 1e9), "Linear"),
        (IntegerParameter(1, 1000), "Logarithmic"),
        (IntegerParameter(1, 999), "Linear"),
        (ContinuousParameter(0.001, 1, "Linear"), "Linear"),
        (ContinuousParameter(0, 0.5, "ReverseLogarithmic"), "ReverseLogarithmic"),
    ],
)
def test_auto_is_logarithmic_from_three_orders_of_magnitude_on(made, scaling):
    assert made.resolved_scaling == scaling


def shares(values: list[float], edges: list[float]) -> list[float]:
    """The share of values between each pair of edges."""
    return list(np.histogram(values, edges)[0] / len(values))


@pytest.mark.parametrize(
    ("made", "edges"),
    [
        (ContinuousParameter(1e-4, 1), [1e-4, 1e-3, 1e-2, 1e-1, 1]),
        (ContinuousParameter(0, 1, "Linear"), [0, 0.25, 0.5, 0.75, 1]),
        (IntegerParameter(1, 9999), [1, 10, 100, 1000, 10000]),
        (IntegerParameter(1, 40), [1, 11, 21, 31, 41]),
        # More of it near 1: as much from 0.999 to 0.9999 as from 0 to 0.9.
        (ContinuousParameter(0, 0.9999, "ReverseLogarithmic"), [0, 0.9, 0.99, 0.999, 0.9999]),
    ],
)
def test_each_scaling_searches_its_own_quarters_alike(made, edges):
    values = [row["x"] for row in draw({"x": made}, seed=5, size=4000)]
    # Six standard errors.
    assert shares(values, edges) == pytest.approx([0.25] * 4, abs=6 * math.sqrt(0.25 * 0.75 / 4000))


def test_both_ends_of_a_range_are_found():
    integers = {row["x"] for row in draw({"x": IntegerParameter(3, 5)}, seed=1, size=100)}
    logarithmic = {row["x"] for row in draw({"x": IntegerParameter(3, 5, "Logarithmic")}, seed=1, size=100)}
    assert integers == logarithmic == {3, 4, 5}


@given(STEPPED)
def test_steps_come_out_as_they_are_written(made: ParameterRange) -> None:
    values = made.members()
    assert len(values) == made.size
    assert values[0] == made.min_value
    assert values[-1] == made.max_value
    for place in {0, len(values) // 3, len(values) - 1}:
        value = values[place]
        start = 0 if isinstance(made, NormalParameter) else Decimal(repr(made.min_value))
        steps = (Decimal(repr(value)) - start) / Decimal(repr(made.step))
        assert abs(steps - round(steps)) < Decimal("1e-12")
        assert len(repr(value)) <= 12
        assert json.loads(json.dumps(value)) == value
        assert made.at(made.position(value)) == made.decode(made.encode(value)) == value
        assert made.is_valid(value)
        assert made.is_valid(value * (1 + 1e-16))
        assert not made.is_valid(value + 0.4 * made.step)


@pytest.mark.parametrize(
    ("made", "shares_of"),
    [
        (ContinuousParameter(0.1, 0.4, step=0.1), {0.1: 0.25, 0.2: 0.25, 0.3: 0.25, 0.4: 0.25}),
        # As much from 1 to 2 as from 2 to 4 as from 4 to 8.
        (IntegerParameter(1, 7, "Logarithmic", step=1), {1: 1 / 3, 2: math.log(1.5) / math.log(8)}),
        (ContinuousParameter(0, 0.9, "ReverseLogarithmic", step=0.1), {0.9: math.log(2) / math.log(11)}),
        (NormalParameter(0, 1, step=1), {0.0: 0.3829, 1.0: 0.2417, -2.0: 0.0606}),
        (NormalParameter(0, 1, "Logarithmic", max_value=1.5, step=1), {1.0: 1.0}),
    ],
)
def test_each_step_is_drawn_by_the_scale(made: ParameterRange, shares_of: dict[float, float]) -> None:
    counted = Counter(row["x"] for row in draw({"x": made}, seed=5, size=4000))
    for value, share in shares_of.items():
        assert counted[value] / 4000 == pytest.approx(share, abs=6 * math.sqrt(0.25 / 4000))


def test_equal_bounds_of_two_kinds_have_values_of_two_types() -> None:
    assert repr(ContinuousParameter(0, 2, step=1).members()) == "[0.0, 1.0, 2.0]"
    assert repr(IntegerParameter(0, 2, step=1).at(0.4)) == "1"


def test_normal_values_lie_around_the_mean_and_within_four_deviations() -> None:
    for made, scale in (
        (NormalParameter(3, 0.5), float),
        (NormalParameter(-3, 0.5, "Logarithmic"), math.log),
    ):
        values = [scale(row["x"]) for row in draw({"x": made}, seed=5, size=4000)]
        assert np.mean(values) == pytest.approx(made.mean, abs=0.05)
        assert np.std(values) == pytest.approx(0.5, abs=0.05)
        assert scale(made.min_value) == pytest.approx(made.mean - 2)
        assert scale(made.max_value) == pytest.approx(made.mean + 2)


def test_bounds_only_cut_a_normal_distribution() -> None:
    assert NormalParameter(10, 1, min_value=0) == NormalParameter(10, 1)
    made = NormalParameter(0, 1, min_value=0)
    values = [row["x"] for row in draw({"x": made}, seed=5, size=4000)]
    assert min(values) >= 0
    assert np.mean(values) == pytest.approx(math.sqrt(2 / math.pi), abs=0.05)
