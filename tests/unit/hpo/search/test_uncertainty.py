"""Standard errors of an AUC and of a share of rows: against simulation, null variances, and the laws they keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.uncertainty import PROPORTIONS, auc_standard_error, proportion_standard_error, standard_error

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


# ---- a share of rows


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_of_a_share_it_is_the_spread_of_samples(share: float) -> None:
    drawn = np.random.default_rng(7).binomial(400, share, 20_000) / 400
    assert proportion_standard_error(share, 400) == pytest.approx(float(np.std(drawn)), rel=0.02)


@given(st.floats(0, 1), COUNTS)
def test_right_and_wrong_are_as_uncertain_and_a_few_rows_prove_nothing(share: float, rows: int) -> None:
    error = proportion_standard_error(share, rows)
    assert error == pytest.approx(proportion_standard_error(1 - share, rows))
    assert error > 0
    assert proportion_standard_error(share, 4 * rows) < error


def test_on_the_test_images_of_mnist() -> None:
    assert proportion_standard_error(0.972, 10_000) == pytest.approx(0.0017, abs=0.0001)


# ---- by the name of the metric


def test_each_metric_has_its_own() -> None:
    labels = np.repeat([0.0, 1.0], [1822, 238])
    assert standard_error("auc", 0.785, labels) == auc_standard_error(0.785, 238, 1822)
    for metric in [*PROPORTIONS, "error@0.4"]:
        assert standard_error(metric, 0.9, labels) == proportion_standard_error(0.9, 2060)


@pytest.mark.parametrize(
    ("metric", "value", "labels"),
    [
        ("logloss", 0.5, [0, 1]),  # no formula
        ("auc", 0.5, [1, 1]),  # one class only
        ("auc", 0.5, [0, 1, 2]),  # more than two
        ("accuracy", 97.2, [0, 1]),  # in percent
        ("accuracy", math.nan, [0, 1]),
        ("accuracy", 0.5, []),
    ],
)
def test_what_is_not_known_is_none(metric: str, value: float, labels: list[float]) -> None:
    assert standard_error(metric, value, labels) is None
