"""A search whose trials are read from curves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hpo.search import Search
from hpo.simulation import Curves, Replayed, simulate
from hpo.strategies import Plan, Strategy, strategy_of
from tests.support.curves import RANGES, UNITS

SEARCH = Search(
    name="job",
    metric="validation:auc",
    mode="max",
    max_jobs=1,
    max_parallel_jobs=2,
    max_resource=UNITS,
    seed=3,
    storage_path="/nowhere",
)
RANDOM, HYPERBAND = strategy_of("Random", None), strategy_of("Hyperband", None)


def run(curves: Curves, strategy: Strategy, plan: Plan, **changed: Any) -> Replayed:
    return simulate(curves, replace(SEARCH, **changed), strategy, plan, RANGES)
