"""The standard error of an AUC, against simulation, against its null variance, and by the laws it has to keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpo.uncertainty import auc_standard_error

COUNTS = st.integers(1, 100_000)


def simulated_standard_error(auc: float, positives: int, negatives: int, draws: int = 4000) -> float:
    """The spread of the AUCs of many samples, with scores for which the formula is exact: exponential ones."""
    random = np.random.default_rng(7)
    # For exponential scores, AUC = 1 / (1 + the rate of the positives over that of the negatives).
    scale = auc / (1 - auc)
    areas = [
        np.mean(random.exponential(scale, positives)[:, None] > random.exponential(1.0, negatives)[None, :])
        for _ in range(draws)
    ]
    assert np.mean(areas) == pytest.approx(auc, abs=0.01)
    return float(np.std(areas))


@pytest.mark.parametrize(("positives", "negatives"), [(10, 80), (80, 10), (40, 40)])
@pytest.mark.parametrize("auc", [0.6, 0.9])
def test_it_is_the_spread_of_samples(auc: float, positives: int, negatives: int) -> None:
    simulated = simulated_standard_error(auc, positives, negatives)
    assert auc_standard_error(auc, positives, negatives) == pytest.approx(simulated, rel=0.05)


def test_on_the_validation_rows_of_bank_marketing() -> None:
    """What two tuned models have to differ by to differ at all: 2,060 rows, 238 of them positive."""
    assert auc_standard_error(0.785, 238, 1822) == pytest.approx(0.018, abs=0.0005)


@given(COUNTS, COUNTS)
def test_a_perfect_score_is_certain(positives: int, negatives: int) -> None:
    assert auc_standard_error(1.0, positives, negatives) == 0.0


@given(COUNTS, COUNTS)
def test_by_chance_it_is_the_rank_sums_null_variance(positives: int, negatives: int) -> None:
    expected = math.sqrt((positives + negatives + 1) / (12 * positives * negatives))
    assert auc_standard_error(0.5, positives, negatives) == pytest.approx(expected)
    assert auc_standard_error(0.5, negatives, positives) == pytest.approx(expected)


@given(st.floats(0.5, 0.999), st.integers(1, 1000), st.integers(1, 1000), st.integers(2, 50))
def test_more_rows_are_more_certain(auc: float, positives: int, negatives: int, times: int) -> None:
    error = auc_standard_error(auc, positives, negatives)
    assert auc_standard_error(auc, times * positives, negatives) < error
    assert auc_standard_error(auc, positives, times * negatives) < error
    assert auc_standard_error(auc, times * positives, times * negatives) < error


@given(st.floats(0.5, 0.99))
def test_with_many_rows_four_times_as_many_halve_it(auc: float) -> None:
    few, many = auc_standard_error(auc, 20_000, 50_000), auc_standard_error(auc, 80_000, 200_000)
    assert few / many == pytest.approx(2.0, rel=1e-3)
