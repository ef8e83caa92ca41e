"""A search by an Optuna sampler, and results for it."""

from __future__ import annotations

from typing import Any

import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler

from hpo.strategies.ray_tune.sampler_search import SamplerSearch

SPACE = {"eta": FloatDistribution(0.1, 1), "num_round": IntDistribution(1, 9)}


@pytest.fixture
def search() -> SamplerSearch:
    return SamplerSearch(
        RandomSampler(seed=1), SPACE, metric="auc", mode="max", longest=9, length=lambda config: config["num_round"]
    )


def result(units: int, value: float, num_round: int = 9) -> dict[str, Any]:
    return {"auc": value, "resource": units, "config": {"num_round": num_round}}
