"""Convergence: what is left to find, by the numbers and values of trials alone."""

from __future__ import annotations

import math

import pytest

from tests.support.hpo.suggestions.convergence import first, judged


def hill(x: float) -> float:
    return 1 - (x - 0.3) ** 2


def test_a_smooth_hill_is_found_out_and_what_is_left_is_little() -> None:
    verdicts = judged(hill)
    number = first(verdicts)
    assert number is not None
    found = verdicts[number]
    assert found is not None
    assert 27 <= number < 59
    assert found.since <= number + 1 - 20
    assert 0 <= found.gain < 0.05


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_neither_scale_nor_sign_nor_the_order_of_telling_matters(scale: float) -> None:
    expected = judged(hill)
    number = first(expected)
    assert first(judged(hill, scale=scale)) == number
    assert first(judged(hill, maximize=False)) == number
    assert judged(hill, order=5) == expected


def test_lost_trials_count_as_bad_ones() -> None:
    verdicts = judged(lambda x: hill(x) if x < 0.7 else math.nan)
    assert first(verdicts) is not None
