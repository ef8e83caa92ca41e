"""Observations of a made-up loss, and proposals from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.suggestions import Observation, Space, propose

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


BRANCHES = {
    "optimizer": CategoricalParameter(["sgd", "adam"]),
    "momentum": ContinuousParameter(0, 1, when={"optimizer": ["sgd"]}),
    "kind": CategoricalParameter(["a", "b"], when={"optimizer": ["adam"]}),
    "rate": ContinuousParameter(0, 1, step=0.1),
}
TREE = Space(BRANCHES)
