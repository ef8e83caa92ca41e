"""The searcher with a model: computed ahead where that disturbs nobody, and never again what a record has."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from hpo.ranges import decode
from hpo.strategies.model_strategy import lag_for
from hpo.strategies.scheduler import RESOURCE
from hpo.suggestions import FEWEST_TRIALS, Observation
from tests.support.hpo.strategies.searchers.model_search import RANGES, TASK, play, searcher
from tests.support.refusals import refuses
from trainers.errors import WarmbandError


def test_nothing_is_computed_while_a_trial_trains_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    search = searcher(replace(TASK, in_process=True))
    asked: list[int] = []
    compute = search.compute

    def propose(number: int) -> dict[str, Any]:
        asked.append(number)
        return compute(number)

    monkeypatch.setattr(search, "compute", propose)
    play(search, trials=FEWEST_TRIALS + 1)
    assert asked == [FEWEST_TRIALS]


def test_it_waits_for_the_results_that_it_reads() -> None:
    search = searcher(replace(TASK, parallel=4))
    lag = lag_for(4)
    names = [f"trial-{number}" for number in range(FEWEST_TRIALS + lag - 1)]
    for name in names:
        suggested = search.suggest(name)
        assert suggested is not None
        search.begun(name, decode(RANGES, suggested))
    assert search.suggest("next") is None
    for place, name in enumerate(names[:FEWEST_TRIALS]):
        assert search.suggest("next") is None
        search.on_trial_result(name, {RESOURCE: 3, "m": float(place)})
    assert search.suggest("next") is not None


def test_all_trials_lost_leave_it_to_chance() -> None:
    search = searcher()
    for number in range(FEWEST_TRIALS):
        name = f"trial-{number}"
        suggested = search.suggest(name)
        assert suggested is not None
        search.begun(name, decode(RANGES, suggested))
        search.on_trial_complete(name, error=True)
    assert search.suggest("next") is not None


def test_a_suggestion_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr("hpo.strategies.searchers.model_search.LONGEST_SUGGESTION", 0.05)
    earlier = [
        Observation(hyperparameters={"eta": 0.1 * number, "mixed": 1}, resource=3, value=1.0)
        for number in range(FEWEST_TRIALS)
    ]
    search = searcher(replace(TASK, earlier=earlier))
    monkeypatch.setattr(search, "compute", lambda number: released.wait(30))
    try:
        with refuses(WarmbandError, field="first", value="0 s", remedy="resume"):
            search.suggest("first")
    finally:
        released.set()
