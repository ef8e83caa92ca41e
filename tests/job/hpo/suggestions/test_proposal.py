"""What a model suggests: the same for the same arguments, better than chance, and a configuration of the ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpo.ranges import CategoricalParameter, IntegerParameter
from hpo.suggestions import Observation, Space, propose
from hpo.suggestions.surface import MOST_POINTS
from tests.support.hpo.suggestions.proposal import END, TREE, drawn, loss, proposed, seen


def test_it_finds_in_20_trials_what_chance_finds_in_hundreds() -> None:
    found = seen(6)
    for number in range(14):
        configuration = proposed(found, seed=number)
        found.append(Observation(hyperparameters=configuration, resource=END, value=loss(configuration)))
    chance = sorted(loss(each) for each in drawn(400, seed=5))
    assert min(each.value for each in found) < chance[4]


def test_of_a_few_configurations_each_comes_once_and_then_again() -> None:
    space = Space({"depth": IntegerParameter(1, 3), "booster": CategoricalParameter(["gbtree", "dart"])})
    found: list[Observation] = []
    for number in range(8):
        named = {"max_resource": 1, "maximize": True, "stream": np.random.RandomState(number)}
        first = {"depth": 1, "booster": "dart"}
        configuration = propose(space, found, **named).hyperparameters if found else first
        found.append(Observation(hyperparameters=configuration, resource=1, value=float(configuration["depth"])))
    assert len({str(each.hyperparameters) for each in found[:6]}) == 6


def branch_loss(configuration: dict[str, Any]) -> float:
    """Least with SGD, of a momentum of 0.9."""
    if configuration["optimizer"] == "adam":
        return 1.0 + (configuration["kind"] == "b") + configuration["rate"]
    return abs(configuration["momentum"] - 0.9) + configuration["rate"]


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
