"""Replays of searches on recorded curves: what was seen when, what is billed, and one answer."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from hpo.simulation import compare
from hpo.strategies import lay_out
from tests.support.curves import RANGES, UNITS, table
from tests.support.hpo.simulation.replay import HYPERBAND, RANDOM, SEARCH, run
from tests.support.properties import examples


@settings(max_examples=examples(4))
@given(st.integers(0, 1000), st.integers(1, 20), st.integers(1, 8))
def test_the_answer_does_not_depend_on_the_gangs(seed: int, diverged: int, gangs: int) -> None:
    curves, plan = table(diverged=diverged), lay_out(20, 1, UNITS)
    alone, together = (run(curves, HYPERBAND, plan, seed=seed, max_parallel_jobs=count) for count in (1, gangs))
    assert [repr(trial) for trial in alone.trials] == [repr(trial) for trial in together.trials]
    assert together.wall_seconds <= alone.wall_seconds
    assert alone.units <= plan.resource
    assert list(together.seconds) == sorted(together.seconds)


def test_strategies_gangs_and_budgets_are_compared() -> None:
    rows = compare(
        table(),
        SEARCH,
        RANGES,
        strategies={"Random": RANDOM, "Hyperband": HYPERBAND},
        units=UNITS,
        gangs=[1, 4],
        max_jobs=[6, 12],
        seeds=range(3),
    )
    assert [(row.strategy, row.max_jobs, row.gangs) for row in rows] == [
        (name, jobs, gangs) for name in ("Random", "Hyperband") for jobs in (6, 12) for gangs in (1, 4)
    ]
    by_key = {(row.strategy, row.max_jobs, row.gangs): row.to_json(None) for row in rows}
    random, hyperband = by_key["Random", 12, 1], by_key["Hyperband", 12, 1]
    assert random["units"] == random["most_units"] == 12 * UNITS > hyperband["units"]
    assert by_key["Random", 12, 4]["wall_seconds"] == random["wall_seconds"] / 4
    assert len(random["regrets"]) == random["seeds"] == 3
    assert by_key["Random", 6, 1]["regret"] >= random["regret"] >= 0
