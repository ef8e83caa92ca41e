"""What a model suggests: the same for the same arguments, better than chance, and a configuration of the ranges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hpo.suggestions import Observation
from hpo.suggestions.observation import normal_scores
from hpo.suggestions.proposal import FINALISTS, _untried
from hpo.suggestions.surface import MOST_POINTS
from tests.support.hpo.suggestions.proposal import END, RANGES, SPACE, TREE, drawn, loss, proposed, seen
from tests.support.properties import examples


@given(st.lists(st.floats(-1e6, 1e6) | st.just(math.nan) | st.just(math.inf), min_size=1, max_size=20), st.booleans())
def test_scores_are_ranks(values: list[float], maximize: bool) -> None:
    scores = normal_scores(values, maximize=maximize)
    assert np.isfinite(scores).all()
    sign = 1 if maximize else -1
    signed = [sign * value if math.isfinite(value) else -math.inf for value in values]
    for one, first in zip(signed, scores, strict=True):
        for other, second in zip(signed, scores, strict=True):
            assert (one < other) == (first < second)


def test_the_same_arguments_give_the_same_configuration() -> None:
    assert proposed(seen(12)) == proposed(seen(12))
    assert proposed(seen(12)) != proposed(seen(12), seed=2)


def test_a_rung_tells_of_the_end() -> None:
    """All that was seen is the first rung."""
    low = seen(25, resource=3)
    assert loss(proposed(low)) < np.median([loss(each) for each in drawn(100)])


def test_it_stays_away_from_what_diverged() -> None:
    away = [
        Observation(hyperparameters=each, resource=END, value=math.nan if each["rate"] > 0.01 else -each["rate"])
        for each in drawn(25)
    ]
    assert [proposed(away, seed=seed)["rate"] < 0.03 for seed in range(5)] == [True] * 5


def test_it_does_not_ask_again_for_what_is_being_trained() -> None:
    first = proposed(seen(25))
    again = proposed(seen(25), begun=[first])
    assert again != first


@pytest.mark.parametrize(
    "observations",
    [
        seen(1),
        seen(1) * 3,
        [Observation(hyperparameters=each, resource=1, value=0.5) for each in drawn(4)],
        [Observation(hyperparameters=each, resource=1, value=math.nan) for each in drawn(4)],
        [Observation(hyperparameters=each, resource=1, value=1e300) for each in drawn(2)],
    ],
    ids=["one", "one three times", "all equal", "all diverged", "huge"],
)
def test_little_is_enough(observations: list[Observation]) -> None:
    configuration = proposed(observations, max_resource=1)
    assert all(bounds.is_valid(configuration[name]) for name, bounds in RANGES.items())


def test_of_many_the_furthest_trained_are_kept() -> None:
    """Those of the first rung say the opposite of those of the last."""
    turned = [Observation(hyperparameters=each, resource=1, value=-loss(each)) for each in drawn(300, seed=3)]
    assert loss(proposed([*turned, *seen(MOST_POINTS)])) < 0.5


@settings(max_examples=examples(20))
@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_points_and_configurations_turn_into_one_another(point: list[float]) -> None:
    configuration = SPACE.hyperparameters(point)
    assert SPACE.hyperparameters(SPACE.point(configuration)) == pytest.approx(configuration)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(25))
def test_a_point_and_its_configuration_turn_into_one_another(seed: int) -> None:
    drawn = np.random.RandomState(seed).random_sample((5, TREE.sides))
    near = TREE.near(TREE.nearest(drawn)[0], 0.1, 5, np.random.RandomState(seed))
    for point in np.vstack([drawn, near]):
        configuration = TREE.hyperparameters(point)
        assert ("momentum" in configuration) == (configuration["optimizer"] == "sgd") != ("kind" in configuration)
        assert TREE.hyperparameters(TREE.point(configuration)) == configuration


def test_a_model_does_not_tell_what_is_not_there_apart() -> None:
    one, other = ({"optimizer": "adam", "kind": "a", "rate": 0.1, "momentum": momentum} for momentum in (0.1, 0.8))
    np.testing.assert_array_equal(TREE.point(one), TREE.point(other))
    present = np.array([TREE.point({"optimizer": "sgd", "momentum": 0.5, "rate": 0.1}), TREE.point(one)])
    assert (TREE.features(present)[0] != TREE.features(present)[1]).any()


def test_where_all_finalists_were_tried_the_other_candidates_are_looked_at() -> None:
    tried, other = SPACE.nearest(np.array([SPACE.point(each) for each in drawn(2)]))
    candidates = np.array([tried] * FINALISTS + [other])
    found = _untried(SPACE, candidates, candidates[:1])
    assert np.allclose(found, [other])
    assert len(_untried(SPACE, candidates[:1], candidates[:1])) == 1
