"""Searches of several sizes: what is asked of them, and the free one beside the one of one answer."""

from __future__ import annotations

import pytest

from experiments.search_sizes import ANSWERS, page_tables, targets
from experiments.shared.benchmark import targets_to_json
from hpo.ranges import ContinuousParameter, decode
from hpo.strategies import RESOURCE, ModelSearch, Task
from hpo.suggestions import FEWEST_TRIALS

RANGES = {"eta": ContinuousParameter(0.0, 1.0)}


def suggested(arm: str, seen: int) -> dict[str, object] | None:
    """What a search of four trials at once suggests behind 20, the first of them seen."""
    strategy = ANSWERS[arm]()
    plan = strategy.plan(RANGES, 115, 27)
    task = Task(plan=plan, ranges=RANGES, metric="value", mode="max", seed=1, parallel=4, in_process=True)
    searcher = strategy.prepare(task).searcher
    assert isinstance(searcher, ModelSearch)
    for number in range(20):
        tried = decode(RANGES, searcher._random.drawn(number))
        searcher.begun(f"t{number}", tried)
        if number < seen:
            searcher.on_trial_result(f"t{number}", {RESOURCE: plan.brackets[0].rungs[0], "value": tried["eta"]})
    return searcher.suggest("next")


def test_the_free_search_waits_for_nothing_and_has_layout_and_fewest_trials_of_the_other() -> None:
    one, free = (ANSWERS[arm]() for arm in ("one answer", "free"))
    assert one.plan(RANGES, 115, 27) == free.plan(RANGES, 115, 27)
    assert suggested("one answer", 12) is None
    assert suggested("one answer", 13) is not None
    drawn = suggested("free", 0)
    assert suggested("free", FEWEST_TRIALS - 1) == drawn
    assert suggested("free", FEWEST_TRIALS) != drawn


def test_promises_and_tables_are_of_the_parts_that_there_are() -> None:
    job = {"trials": 500, "least_seconds": 31.25, "simulated_seconds": 33.0}
    first = {**job, "suggestion_median": 0.02, "suggestion_longest": 0.25}
    result = {
        "small": {},
        "answers": {"4": {"one answer": [[0.08, 18.0], [0.10, 18.0]], "free": [[0.06, 20.0], [0.08, 20.0]]}},
        "large": {"500": first, "10000": {**first, "trials": 10_000, "simulated_seconds": 640.0}},
    }
    made = targets(result)
    assert [each.kept for each in made] == [True, False, True]
    assert [each.measured for each in made] == pytest.approx([0.02, 0.25, 640])
    tables = page_tables({**result, "targets": targets_to_json(made)})
    assert tables["large"].splitlines()[2] == "| 500 | 31.2 | 33.0 | 5.3% | 0.020 | 0.250 |"
    assert tables["answers-4"].splitlines()[2] == "| one answer | 0.090 ± 0.010 | 18.0 |"
