"""Convergence: what is left to find, by the numbers and values of trials alone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from hpo import CategoricalParameter, ContinuousParameter
from hpo.ranges import ParameterRange
from hpo.ranking import Ranking
from hpo.suggestions import Converged, Convergence

RANGES: dict[str, ParameterRange] = {
    "x": ContinuousParameter(0, 1),
    "kind": CategoricalParameter(["a", "b"]),
}
Height = Callable[[float], float]


def judged(
    height: Height, *, trials: int = 60, maximize: bool = True, scale: float = 1.0, order: int = 0
) -> list[Converged | None]:
    """The verdict after each trial, of random ones; told of in another order, the verdicts come at the end."""
    stream = random.Random(3)
    convergence = Convergence(RANGES, max_resource=9, ranking=Ranking(maximize=maximize))
    tried = [{"x": stream.random(), "kind": stream.choice("ab")} for _ in range(trials)]
    told = list(range(trials))
    random.Random(order).shuffle(told) if order else None
    for number in told:
        value = height(float(tried[number]["x"])) * (scale if maximize else -scale)
        convergence.begun(number, tried[number])
        convergence.reached(number, 3, value / 2)
        convergence.ended(number, 9, value)
    return [convergence.judge(number + 1) for number in range(trials)]


def hill(x: float) -> float:
    return 1 - (x - 0.3) ** 2


def first(verdicts: list[Converged | None]) -> int | None:
    return next((number for number, found in enumerate(verdicts) if found), None)


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


@pytest.mark.parametrize("height", [lambda x: math.nan, lambda x: 0.5, lambda x: math.inf])
def test_where_there_is_nothing_to_tell_by_it_goes_on(height: Height) -> None:
    assert first(judged(height)) is None


def test_a_trial_that_was_lost_behind_a_rung_was_good_until_there() -> None:
    convergence = Convergence(RANGES, max_resource=9, ranking=Ranking(maximize=True))
    convergence.begun(0, {"x": 0.5, "kind": "a"})
    convergence.reached(0, 3, 0.7)
    convergence.ended(0, 3, math.nan)
    values = convergence._values[0]
    assert values[3] == 0.7
    assert math.isnan(values[4])
