"""What a model suggests: the same for the same arguments, better than chance, and a configuration of the ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.suggestions import Observation, Space, propose
from hpo.suggestions.observation import normal_scores
from hpo.suggestions.proposal import FINALISTS, _untried
from hpo.suggestions.surface import MOST_POINTS

RANGES = {
    "rate": ContinuousParameter(1e-4, 1, "Logarithmic"),
    "depth": IntegerParameter(1, 8),
    "booster": CategoricalParameter(["gbtree", "dart", "gblinear"]),
}
SPACE = Space(RANGES)
END = 27


def loss(configuration: dict[str, Any], resource: int = END) -> float:
    """Least at a rate of 0.01, a depth of 5 and dart; it falls with resource."""
    away = abs(math.log10(configuration["rate"]) + 2) + abs(configuration["depth"] - 5) / 4
    return away + (configuration["booster"] != "dart") + 1 / resource


def drawn(count: int, seed: int = 0) -> list[dict[str, Any]]:
    return [SPACE.hyperparameters(point) for point in np.random.RandomState(seed).random_sample((count, SPACE.sides))]


def seen(count: int, resource: int = END) -> list[Observation]:
    return [Observation(hyperparameters=each, resource=resource, value=loss(each, resource)) for each in drawn(count)]


def proposed(observations: list[Observation], seed: int = 1, **named: Any) -> dict[str, Any]:
    stream = np.random.RandomState(seed)
    named = {"max_resource": END, "maximize": False, "stream": stream, **named}
    return propose(SPACE, observations, **named).hyperparameters


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


def test_it_finds_in_20_trials_what_chance_finds_in_hundreds() -> None:
    found = seen(6)
    for number in range(14):
        configuration = proposed(found, seed=number)
        found.append(Observation(hyperparameters=configuration, resource=END, value=loss(configuration)))
    chance = sorted(loss(each) for each in drawn(400, seed=5))
    assert min(each.value for each in found) < chance[4]


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


def test_of_a_few_configurations_each_comes_once_and_then_again() -> None:
    space = Space({"depth": IntegerParameter(1, 3), "booster": CategoricalParameter(["gbtree", "dart"])})
    found: list[Observation] = []
    for number in range(8):
        named = {"max_resource": 1, "maximize": True, "stream": np.random.RandomState(number)}
        first = {"depth": 1, "booster": "dart"}
        configuration = propose(space, found, **named).hyperparameters if found else first
        found.append(Observation(hyperparameters=configuration, resource=1, value=float(configuration["depth"])))
    assert len({str(each.hyperparameters) for each in found[:6]}) == 6


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


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_points_and_configurations_turn_into_one_another(point: list[float]) -> None:
    configuration = SPACE.hyperparameters(point)
    assert SPACE.hyperparameters(SPACE.point(configuration)) == pytest.approx(configuration)


# ---- with conditions

BRANCHES = {
    "optimizer": CategoricalParameter(["sgd", "adam"]),
    "momentum": ContinuousParameter(0, 1, when={"optimizer": ["sgd"]}),
    "kind": CategoricalParameter(["a", "b"], when={"optimizer": ["adam"]}),
    "rate": ContinuousParameter(0, 1, step=0.1),
}
TREE = Space(BRANCHES)


def branch_loss(configuration: dict[str, Any]) -> float:
    """Least with SGD, of a momentum of 0.9."""
    if configuration["optimizer"] == "adam":
        return 1.0 + (configuration["kind"] == "b") + configuration["rate"]
    return abs(configuration["momentum"] - 0.9) + configuration["rate"]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25)
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


def test_a_branch_is_found_and_searched() -> None:
    stream = np.random.RandomState(0).random_sample((6, TREE.sides))
    found = [TREE.hyperparameters(point) for point in stream]
    for number in range(16):
        observations = [Observation(hyperparameters=each, resource=9, value=branch_loss(each)) for each in found]
        stream = np.random.RandomState(number)
        found.append(propose(TREE, observations, max_resource=9, maximize=False, stream=stream).hyperparameters)
    best = min(found, key=branch_loss)
    assert best["optimizer"] == "sgd"
    assert branch_loss(best) < 0.1


def test_beyond_the_most_points_a_better_trial_is_still_learned_from() -> None:
    """The best came last: what is suggested lies near it, and would not without it."""
    many = [each for each in seen(3 * MOST_POINTS) if loss(each.hyperparameters) > 1.5]
    assert len(many) > MOST_POINTS
    best = {"rate": 0.01, "depth": 5, "booster": "dart"}
    near = [Observation(hyperparameters=best, resource=END, value=loss(best))] * 3
    with_it, without = proposed([*many, *near]), proposed(many)
    assert loss(with_it) < loss(without)


def test_where_all_finalists_were_tried_the_other_candidates_are_looked_at() -> None:
    tried, other = SPACE.nearest(np.array([SPACE.point(each) for each in drawn(2)]))
    candidates = np.array([tried] * FINALISTS + [other])
    found = _untried(SPACE, candidates, candidates[:1])
    assert np.allclose(found, [other])
    assert len(_untried(SPACE, candidates[:1], candidates[:1])) == 1
