"""How far two ways to train are apart, and how much a change gives back: by the laws that shares have to keep."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, strategies as st

from experiments.convergence.effects import Gap, Share, interact
from experiments.shared.scores import Scores

SCORES = st.lists(st.floats(0.05, 0.95), min_size=2, max_size=6).map(lambda values: Scores(values=tuple(values)))


def one(value: float, row_error: float | None = None) -> Scores:
    return Scores(values=(value,), row_error=row_error)


def test_the_error_beside_a_mean_is_that_over_seeds_or_else_of_the_rows() -> None:
    assert one(0.9, 0.01).error == 0.01
    assert one(0.9, 0.01).spread is one(0.9).error is None
    several = Scores(values=(0.8, 0.9, 1.0), row_error=0.01)
    assert several.mean == pytest.approx(0.9)
    assert several.error == several.seed_error == pytest.approx(0.1 / math.sqrt(3))


@given(SCORES, SCORES)
def test_one_worker_gives_all_of_a_gap_back_and_the_run_itself_nothing(alone: Scores, distributed: Scores) -> None:
    gap = Gap(alone=alone, distributed=distributed)
    assume(abs(gap.size) > 1e-6)
    assert gap.share(alone).value == pytest.approx(1)
    assert gap.share(distributed).value == pytest.approx(0)


@given(SCORES, SCORES, SCORES, st.floats(-3, 3), st.floats(0.1, 9))
def test_a_share_has_no_unit(alone: Scores, distributed: Scores, changed: Scores, shift: float, factor: float) -> None:
    """Scores in percent, or an error instead of an accuracy, give the same share, and the same error of it."""
    assume(abs(alone.mean - distributed.mean) > 1e-2)

    def other(scores: Scores, by: float) -> Scores:
        return Scores(values=tuple(shift + by * value for value in scores.values))

    share = Gap(alone=alone, distributed=distributed).share(changed)
    for by, maximize in ((factor, True), (-factor, False)):
        gap = Gap(alone=other(alone, by), distributed=other(distributed, by), maximize=maximize)
        assert gap.size == pytest.approx(factor * Gap(alone=alone, distributed=distributed).size, abs=1e-9)
        again = gap.share(other(changed, by))
        assert again.value == pytest.approx(share.value, rel=1e-6, abs=1e-6)
        assert again.error == pytest.approx(share.error, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("alone", "distributed", "is_one"),
    [
        (one(0.97, 0.002), one(0.11, 0.003), True),
        (one(0.755, 0.018), one(0.7549, 0.018), False),
        (one(0.97, 0.002), one(0.98, 0.002), False),  # it is better
        (Scores(values=(0.9, 0.8)), Scores(values=(0.86, 0.8)), False),
        (one(0.9), one(0.8), True),  # a noise that is not known hides nothing
    ],
)
def test_a_gap_is_more_than_its_noise(alone: Scores, distributed: Scores, is_one: bool) -> None:
    assert Gap(alone=alone, distributed=distributed).is_one is is_one


def test_without_any_error_a_share_has_none() -> None:
    share = Gap(alone=one(0.9), distributed=one(0.5)).share(one(0.7))
    assert share == Share(value=pytest.approx(0.5), error=None)
    assert share.counts
    assert not Share(value=0.1, error=0.06).counts


@pytest.mark.parametrize(
    ("shares", "do"),
    [
        ([Share(value=0.6, error=0.01), Share(value=0.4, error=0.01)], False),
        ([Share(value=0.99, error=0.01), Share(value=0.95, error=0.02)], True),
        ([Share(value=0.1, error=0.01), Share(value=0.2, error=0.01)], True),
        ([Share(value=0.5, error=0.3), Share(value=0.2, error=0.3)], False),
        ([], True),
    ],
)
def test_causes_interact_where_shares_do_not_add_up(shares: list[Share], do: bool) -> None:
    assert interact(shares) is do
