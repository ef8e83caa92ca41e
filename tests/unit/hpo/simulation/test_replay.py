"""Replays of searches on recorded curves: what was seen when, what is billed, and one answer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hpo.cost import Limits
from hpo.simulation import Curves, compare
from hpo.strategies import run_all
from tests.support.curves import RANGES, UNITS, recorded, table
from tests.support.hpo.simulation.replay import HYPERBAND, RANDOM, SEARCH, run
from tests.support.refusals import refuses
from trainers import ConfigurationError


def test_a_search_of_trials_run_to_the_end_takes_what_they_take() -> None:
    curves = table()
    found = run(curves, RANDOM, run_all(8, UNITS))
    assert [trial.units for trial in found.trials] == [UNITS] * 8
    assert found.wall_seconds == 4 * UNITS * 2.0
    assert found.worker_seconds == 2 * found.wall_seconds
    assert found.units == 8 * UNITS
    assert found.best_after(found.units) == max(curves.values[trial.row].max() for trial in found.trials)


def test_the_bill_has_idle_time_and_starts() -> None:
    """The third trial leaves one of two gangs idle; each starts for 5 s, on three workers."""
    curves = Curves("made", RANGES, recorded(), start_seconds=5.0)
    found = run(curves, RANDOM, run_all(3, UNITS), workers=lambda hyperparameters: 3)
    assert found.wall_seconds == 5 + 2 * UNITS * 2.0
    assert found.worker_seconds == 3 * 2 * found.wall_seconds


def test_values_are_seen_when_their_unit_ends() -> None:
    curves = table()
    found = run(curves, RANDOM, run_all(1, UNITS), max_parallel_jobs=1)
    row = curves.values[found.trials[0].row]
    assert list(found.seconds) == [2.0 * unit for unit in range(1, UNITS + 1)]
    assert math.isnan(found.best_at(1.9))
    assert [found.best_at(seconds) for seconds in (2.0, 3.9, 4.0, 1e9)] == [row[0], row[0], row[1], row[-1]]


def test_a_diverged_curve_ends_its_trial_in_that_unit() -> None:
    curves = table(diverged=60)
    found = run(curves, RANDOM, run_all(4, UNITS), max_parallel_jobs=1)
    assert {(trial.status, trial.units) for trial in found.trials} == {("Diverged", 2)}
    assert all(math.isnan(trial.value) for trial in found.trials)
    assert found.wall_seconds == 4 * 3 * 2.0


def test_a_search_takes_no_curve_twice_where_there_are_many() -> None:
    few, many = (run(table(), RANDOM, run_all(trials, UNITS), max_parallel_jobs=3).trials for trials in (13, 12))
    assert len({trial.row for trial in many}) == 12
    assert len({trial.row for trial in few}) < 13


def test_a_time_limit_ends_the_search_at_the_next_unit() -> None:
    found = run(table(), RANDOM, run_all(50, UNITS), limits=Limits(max_seconds=41.0))
    assert found.wall_seconds == 42.0
    assert found.units == 2 * 21
    assert "max_runtime_in_seconds" in found.stopped


def test_the_median_rule_stops_trials_of_the_strategies_that_take_it() -> None:
    asked: dict[str, Any] = {"units": UNITS, "gangs": [1, 3], "max_jobs": [12], "seeds": range(2)}
    rows = compare(table(), SEARCH, RANGES, strategies={"Random": RANDOM}, early_stopping_type="Auto", **asked)
    alone, together = rows
    for one, three in zip(alone.runs, together.runs, strict=True):
        assert [(trial.row, trial.units) for trial in one.trials] == [(t.row, t.units) for t in three.trials]
        assert {1, UNITS} <= {trial.units for trial in one.trials} <= {1, 3, UNITS}
        assert {trial.status for trial in one.trials} == {"Completed", "Stopped"}
        assert one.units == sum(trial.units for trial in one.trials)
    both = {"Random": RANDOM, "Hyperband": HYPERBAND}
    with refuses(ConfigurationError, field="early_stopping_type", value="Auto", remedy=("Hyperband", "Off")):
        compare(table(), SEARCH, RANGES, strategies=both, early_stopping_type="Auto", **asked)


def test_the_median_rule_compares_configurations_where_they_are_repeated() -> None:
    asked: dict[str, Any] = {"strategies": {"Random": RANDOM}, "units": UNITS, "gangs": [2], "seeds": range(1)}
    once, thrice = (
        compare(
            table(),
            replace(SEARCH, repeats=repeats),
            RANGES,
            max_jobs=[8 * repeats],
            early_stopping_type="Auto",
            **asked,
        )[0].runs[0]
        for repeats in (1, 3)
    )
    assert [trial.units for trial in thrice.trials[::3]] == [trial.units for trial in once.trials]
    assert thrice.units == 3 * once.units < 3 * 8 * UNITS


def test_trials_longer_than_the_curves_are_refused() -> None:
    with refuses(ConfigurationError, field="max_resource", value=10, remedy=("made", "9")):
        run(table(), RANDOM, run_all(1, UNITS + 1))
