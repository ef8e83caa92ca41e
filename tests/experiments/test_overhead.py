"""The benchmark of the tuner's own cost, on searches of a few trials."""

from __future__ import annotations

import cProfile
import json
import pstats
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from experiments.overhead import (
    BATCHES,
    PLANS,
    REPORTS,
    Measured,
    NoRecord,
    Searched,
    durable_batches,
    optuna_blocks,
    result,
    run,
    schedule,
    search,
    show,
    targets,
)
from hpo.store import Store


def searched(plan: str, trials: int, durable: float) -> Searched:
    return Searched(
        plan=plan,
        trials=trials,
        reports=trials * REPORTS,
        scheduler=1.0,
        loop=10.0,
        durable=durable,
        durable_wall=2 * durable,
        memory=1_000_000 + 2_000 * trials,
        peak=200_000_000,
    )


MEASURED = Measured(
    searches=[searched(plan, trials, 30.0) for plan in PLANS for trials in (10, 100, 1000)],
    batches=[1.0] * 90 + [2.0] * 10,
    optuna={"in memory": [], "SQLite": []},
)


@pytest.mark.parametrize("plan", PLANS)
def test_a_search_does_the_same_work_in_the_scheduler_the_loop_and_the_store(plan: str, tmp_path: Path) -> None:
    layout = PLANS[plan](20)
    measured = search(plan, 20, str(tmp_path / "store.db"))
    assert measured.reports == schedule(layout)[1] <= layout.resource
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        assert len(store.trials("search")) == 20
        assert len(store.reports("search")) == measured.reports
        batches = durable_batches(str(tmp_path / "store.db"))
        assert len(store.reports("search")) == measured.reports + BATCHES * REPORTS
    assert len(batches) == BATCHES
    assert min(batches) > 0


def test_every_report_is_made_where_nothing_is_stopped() -> None:
    assert schedule(PLANS["every report"](7))[1] == 7 * REPORTS


@pytest.mark.parametrize("plan", PLANS)
def test_a_decision_makes_as_many_calls_in_a_search_ten_times_as_large(plan: str) -> None:
    """Calls, not seconds: they are the same on every machine, however busy."""
    calls = []
    for trials in (100, 1000):
        profile = cProfile.Profile()
        controller = profile.runcall(run, PLANS[plan](trials), NoRecord())
        calls.append(pstats.Stats(profile).total_calls / controller.trained)  # type: ignore[attr-defined]
    assert calls[1] == pytest.approx(calls[0], rel=0.1)


def test_optuna_does_its_trials_in_blocks(tmp_path: Path) -> None:
    for path in (None, str(tmp_path / "optuna.db")):
        blocks = optuna_blocks(60.0, 12, path)
        assert [block.trials for block in blocks] == [10, 12]
        assert all(block.reports > 0 and block.microseconds > 0 for block in blocks)


def test_memory_a_trial_is_what_the_largest_holds_more() -> None:
    assert MEASURED.bytes_a_trial("Hyperband") == pytest.approx(2_000)


def test_promises_are_of_the_largest_search() -> None:
    assert [target.kept for target in targets(MEASURED)] == [True, True]
    *others, largest = MEASURED.searches
    for durable, kept in ((51.0, [False, False]), (40.0, [True, False])):
        slower = replace(MEASURED, searches=[*others, replace(largest, durable=durable)])
        assert [target.kept for target in targets(slower)] == kept


def test_the_result_is_json_and_the_tables_show_it() -> None:
    made = json.loads(json.dumps(result(MEASURED)))
    assert made["bytes_a_trial"]["every report"] == pytest.approx(2_000)
    assert [search["trials"] for search in made["searches"]] == [10, 100, 1000] * 2
    console = Console(file=StringIO(), width=200)
    console.print(show(MEASURED))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "2,000 bytes a trial with 'Hyperband'" in printed
    assert "missed" not in printed
