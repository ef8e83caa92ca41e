"""Searches that a model guides."""

from __future__ import annotations

from typing import Any

from hpo.ranges import CategoricalParameter, ContinuousParameter, decode
from hpo.strategies.hyperband import run_all
from hpo.strategies.model_strategy import BayesianStrategy
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.searchers import ModelSearch
from hpo.strategies.strategy import Task

RANGES: dict[str, Any] = {
    "eta": ContinuousParameter(0.0, 0.99, "ReverseLogarithmic"),
    "mixed": CategoricalParameter([1, True, "1"]),
}
TASK = Task(plan=run_all(14, 3), ranges=RANGES, metric="m", mode="min", seed=4)


def searcher(task: Task = TASK) -> ModelSearch:
    made = BayesianStrategy().prepare(task).searcher
    assert isinstance(made, ModelSearch)
    return made


def play(search: ModelSearch, trials: int = 14, known: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """One trial after another; those that are known are told and not asked for."""
    tried = []
    for number in range(trials):
        name = f"trial-{number}"
        if known and number < len(known):
            tried.append(known[number])
        else:
            suggested = search.suggest(name)
            assert suggested is not None
            tried.append(decode(RANGES, suggested))
        search.begun(name, tried[-1])
        result = {RESOURCE: 3, "m": (tried[-1]["eta"] - 0.5) ** 2 + (tried[-1]["mixed"] is True)}
        search.on_trial_result(name, result)
        search.on_trial_complete(name, result)
    return tried
