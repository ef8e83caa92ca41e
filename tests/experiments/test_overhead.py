"""The benchmark of the tuner's own cost, on searches of a few trials."""

from __future__ import annotations

import cProfile
import json
import pstats
from dataclasses import replace
from io import StringIO
from pathlib import Path

import optuna
import pytest
import sqlalchemy as sa
from rich.console import Console

from experiments.baselines.optuna_studies import ADJUSTED, DEFAULTS, IN_MEMORY, PRUNERS, STORAGES, Block, Study, blocks
from experiments.overhead import Measured, page_tables, result, show, targets
from experiments.workloads.empty_searches import (
    BATCHES,
    PLANS,
    REPORTS,
    Batches,
    NoRecord,
    Searched,
    durable_batches,
    run,
    schedule,
    search,
)
from hpo.record.database import open_engine
from hpo.record.store import Store
from hpo.search.observer import Record


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
    batches=Batches(milliseconds=[1.0] * 90 + [2.0] * 10, alone=300.0, alone_wall=450.0),
    optuna=[
        Study(
            plan=plan,
            storage=storage,
            blocks=[
                Block(trials=10, reports=500, asking=200.0, all=1000.0 * number, wall=2000.0 * number),
                Block(trials=25, reports=700, asking=400.0, all=5000.0, wall=7000.0),
            ],
        )
        for plan in PRUNERS
        for number, storage in enumerate(STORAGES, 1)
    ],
)


def test_a_record_that_keeps_nothing_has_all_that_a_search_asks_a_record_for() -> None:
    assert {name for name in dir(Record) if not name.startswith("_")} <= set(dir(NoRecord))


@pytest.mark.parametrize("plan", PLANS)
def test_a_search_does_the_same_work_in_the_scheduler_the_loop_and_the_store(plan: str, tmp_path: Path) -> None:
    layout = PLANS[plan](20)
    measured = search(plan, 20, str(tmp_path / "store.db"))
    assert measured.reports == schedule(layout)[1] <= layout.resource
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        assert len(store.trials("search")) == 20
        assert len(store.reports("search")) == measured.reports
        batches = durable_batches(str(tmp_path / "store.db"))
        assert len(store.reports("search")) == measured.reports + BATCHES * (REPORTS + 1)
    assert len(batches.milliseconds) == BATCHES
    assert min(*batches.milliseconds, batches.alone, batches.alone_wall) > 0


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


@pytest.mark.parametrize("plan", PRUNERS)
def test_optuna_does_the_same_first_trials_wherever_its_study_is(plan: str, tmp_path: Path) -> None:
    """The first block whatever it takes, the next for as long as there is time."""
    found = [
        blocks(plan, storage, str(tmp_path / f"study-{number}"), seconds=0.0, least=3, most=30)
        for number, storage in enumerate(STORAGES)
    ]
    assert [study.storage for study in found] == list(STORAGES)
    assert [len(study.blocks) for study in found] == [1] * len(STORAGES)
    assert {study.blocks[0].trials for study in found} == {3}
    assert len({study.blocks[0].reports for study in found}) == 1
    for study in found:
        assert 0 < study.blocks[0].asking <= study.blocks[0].all
    if plan == "every report":
        assert found[0].blocks[0].reports == 3 * REPORTS


def test_optuna_goes_on_in_blocks_that_grow(tmp_path: Path) -> None:
    study = blocks("every report", IN_MEMORY, "", seconds=60.0, least=2, most=25)
    assert [block.trials for block in study.blocks] == [2, 20, 25]


def test_one_of_optunas_studies_has_the_settings_of_sqlite_that_the_store_has(tmp_path: Path) -> None:
    def settings(connected: sa.Engine) -> list[object]:
        with connected.connect() as connection:
            return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]

    here = settings(open_engine(f"sqlite:///{tmp_path}/store.db"))
    adjusted, usual = STORAGES[ADJUSTED](str(tmp_path / "adjusted")), STORAGES[DEFAULTS](str(tmp_path / "usual"))
    assert isinstance(adjusted, optuna.storages.RDBStorage)
    assert isinstance(usual, optuna.storages.RDBStorage)
    assert settings(adjusted.engine) == here != settings(usual.engine)


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
    assert "memory a trial, Hyperband" in printed
    assert "2.0 kB" in printed
    assert "missed" not in printed


def test_the_page_shows_the_same_reports_here_and_in_each_of_optunas_studies() -> None:
    tables = page_tables(json.loads(json.dumps(result(MEASURED))))
    assert "| every report | 1,000 | 50,000 | 1.0 | 10.0 | 30.0 | 60.0 | 200 |" in tables["decisions"]
    lines = tables["beside"].splitlines()
    assert lines[0] == "| every report of 10 trials | a commit holds | processor | wall |"
    assert lines[2:] == [
        "| here | what came together | 30 | 60 |",
        "| here, a report alone, without the search | a report | 300 | 450 |",
        "| Optuna, in memory | nothing is committed | 1,000 | 2,000 |",
        "| Optuna, SQLite | a report | 2,000 | 4,000 |",
        "| Optuna, SQLite, set up as here | a report | 3,000 | 6,000 |",
        "| Optuna, JournalStorage, a file | a report | 4,000 | 8,000 |",
    ]
    assert "| Hyperband | in memory | 25 | 700 | 400 | 5,000 | 7,000 |" in tables["optuna"]
    assert "| nine in ten at most | 1.9 ms |" in tables["batches"]
    assert "| a decision, durable | at most 50 us | 30 us | kept |" in tables["promises"]
