"""How long the rest of a job takes, from what was served."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hpo.cost.throughput import MEASURED_SECONDS, Pace

costs = st.floats(0.001, 10.0)


@given(costs, costs, st.lists(st.integers(1, 30), min_size=2, max_size=40), st.integers(0, 900), st.integers(0, 60))
def test_own_and_unit_costs_are_told_apart(own: float, unit: float, served: list[int], units: int, left: int) -> None:
    pace = Pace()
    for length in served:
        pace.served(length, own + unit * length)
    expected = pace.seconds_left(units, left, running=MEASURED_SECONDS)
    assert expected is not None
    if len(set(served)) > 1:
        assert expected == pytest.approx(own * left + unit * units, rel=1e-3, abs=1e-6)


def test_it_says_nothing_before_enough_was_measured() -> None:
    pace = Pace()
    pace.served(1, 0.4)
    assert pace.seconds_left(300, 40, running=0.1) is None
    pace.served(1, 0.7)
    assert pace.seconds_left(300, 40, running=0.0) == pytest.approx(300 * 0.55)


def test_a_first_assignment_that_takes_long_counts_before_it_is_done() -> None:
    assert Pace().seconds_left(300, 40, running=20.0) == pytest.approx(800.0)


@given(st.lists(st.tuples(st.integers(1, 30), costs), min_size=1, max_size=40), st.integers(0, 900))
def test_it_is_never_negative(served: list[tuple[int, float]], units: int) -> None:
    pace = Pace()
    for length, seconds in served:
        pace.served(length, seconds)
    left = pace.seconds_left(units, 3, running=MEASURED_SECONDS)
    assert left is not None
    assert left >= 0
