"""Trade-offs: the front is what nobody beats, and what is taken keeps its limits."""

from __future__ import annotations

import math

from hypothesis import given, strategies as st

from experiments.shared.tradeoff import Choice, by_budget, by_deadline, front, take

NUMBERS = st.integers(0, 4).map(float)
CHOICES = st.lists(
    st.builds(
        Choice,
        name=st.just(""),
        workers=st.integers(1, 4),
        score=NUMBERS | st.just(math.nan),
        error=st.sampled_from([math.nan, 0.0, 1.0]),
        seconds=NUMBERS,
        worker_seconds=NUMBERS,
    ),
    max_size=8,
)


def as_good(one: Choice, other: Choice) -> bool:
    return one.score >= other.score and one.seconds <= other.seconds and one.worker_seconds <= other.worker_seconds


def alike(one: Choice, other: Choice) -> bool:
    return as_good(one, other) and as_good(other, one)


@given(CHOICES)
def test_the_front_is_what_nobody_beats_and_beats_the_rest(choices: list[Choice]) -> None:
    best = front(choices)
    assert not any(as_good(one, other) and not alike(one, other) for one in best for other in best)
    for choice in choices:
        if math.isfinite(choice.score):
            assert any(as_good(one, choice) for one in best)
        else:
            assert choice not in best


@given(CHOICES, NUMBERS, NUMBERS)
def test_what_is_taken_keeps_both_limits_and_is_within_noise_of_the_best(
    choices: list[Choice], deadline: float, budget: float
) -> None:
    taken = take(choices, deadline=deadline, budget=budget)
    kept = [c for c in choices if math.isfinite(c.score) and c.seconds <= deadline and c.worker_seconds <= budget]
    if taken is None:
        assert not kept
        return
    assert taken in kept
    best = max(choice.score for choice in kept)
    assert taken.score >= best - max(0.0 if math.isnan(c.error) else c.error for c in kept if c.score == best)


@given(CHOICES)
def test_advice_is_what_is_taken_at_each_limit(choices: list[Choice]) -> None:
    for advice, limit in ((by_deadline(choices), "deadline"), (by_budget(choices), "budget")):
        assert [each.limit for each in advice] == sorted({each.limit for each in advice})
        for each in advice:
            assert take(choices, **{limit: each.limit}) is each.choice
        if advice:
            assert take(choices) is advice[-1].choice
        else:
            assert take(choices) is None


def test_of_scores_as_good_the_cheapest_is_taken() -> None:
    good = Choice(name="4 workers", workers=4, score=0.790, error=0.02, seconds=10, worker_seconds=40)
    cheap = Choice(name="1 worker", workers=1, score=0.785, error=0.02, seconds=20, worker_seconds=20)
    bad = Choice(name="2 workers", workers=2, score=0.60, error=0.02, seconds=5, worker_seconds=10)
    assert take([good, cheap, bad]) is cheap
    assert take([good, cheap, bad], deadline=12) is good
    assert take([good, cheap, bad], deadline=6) is bad
    assert take([good, cheap, bad], budget=15) is bad
    assert take([good, cheap, bad], budget=5) is None
    assert [each.choice.workers for each in by_deadline([good, cheap, bad])] == [2, 4, 1]
    assert front([good, cheap, bad]) == [good, cheap, bad]
