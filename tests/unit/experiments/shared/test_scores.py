"""As many rounds on fewer configurations, and what may be said of a difference."""

import math

import pytest

from experiments.shared.scores import configurations, difference, told
from tests.support.refusals import mentions, missing_names


@pytest.mark.parametrize(
    ("rounds", "each", "nearest"), [(334, 30, 11), (345, 30, 12), (346, 30, 12), (4, 30, 1), (81, 9, 9)]
)
def test_configurations_run_to_the_end_use_as_nearly_as_many_rounds(rounds: int, each: int, nearest: int) -> None:
    assert configurations(rounds, each) == nearest


def test_a_difference_is_of_pairs() -> None:
    """Seeds that differ much, and pairs that always differ by the same."""
    same = difference([0.9, 0.5, 0.7], [0.8, 0.4, 0.6])
    assert same.mean == pytest.approx(0.1)
    assert same.error == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="shorter"):
        difference([0.9, 0.5], [0.8])


def test_what_is_said_of_a_difference_comes_from_its_standard_error() -> None:
    zero = [0.0, 0.0]
    mentions(told(difference([0.01, 0.03], zero)), "+0.0200 ± 0.0100", "better", "2.0 times", "standard error")
    mentions(told(difference([-0.01, -0.03], zero)), "-0.0200 ± 0.0100", "worse", "2.0 times", "standard error")
    for scores, figure in (([-0.01, 0.02], "+0.0050 ± 0.0150"), ([0.0, 0.0], "+0.0000 ± 0.0000")):
        said = mentions(told(difference(scores, zero)), figure, "standard error")
        assert missing_names(said, "better", "worse") == ["better", "worse"]
    said = mentions(told(difference([0.5, 0.5], zero)), "+0.5000 ± 0.0000", "better")
    assert missing_names(said, "standard error")


def test_a_single_seed_is_measured_by_its_rows() -> None:
    said = mentions(told(difference([0.8], [0.79], 0.018)), "+0.0100 ± 0.0180", "standard error", "one score")
    assert missing_names(said, "better", "worse") == ["better", "worse"]
    mentions(told(difference([0.8], [0.76], 0.02)), "better", "2.0 times", "standard error", "one score")
    assert told(difference([0.8], [0.79])) == "+0.0100"


def test_what_has_no_score_is_neither_better_nor_worse() -> None:
    said = mentions(told(difference([math.nan], [0.79], 0.018)), "score")
    assert missing_names(said, "better", "worse", "nan") == ["better", "worse", "nan"]
