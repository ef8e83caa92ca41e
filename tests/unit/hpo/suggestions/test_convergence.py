"""Convergence: what is left to find, by the numbers and values of trials alone."""

from __future__ import annotations

import math

import pytest

from hpo.ranking import Ranking
from hpo.suggestions import Convergence
from tests.support.hpo.suggestions.convergence import RANGES, Height, first, judged


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
