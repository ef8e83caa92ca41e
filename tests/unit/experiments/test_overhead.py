"""The benchmark of the tuner's own cost, on searches of a few trials."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from experiments.baselines.optuna_studies import IN_MEMORY, blocks
from experiments.overhead import page_tables, result, show, targets
from experiments.workloads.empty_searches import (
    PLANS,
    REPORTS,
    NoRecord,
    schedule,
)
from hpo.search.observer import Record
from tests.support.experiments.overhead import MEASURED


def test_a_record_that_keeps_nothing_has_all_that_a_search_asks_a_record_for() -> None:
    assert {name for name in dir(Record) if not name.startswith("_")} <= set(dir(NoRecord))


def test_every_report_is_made_where_nothing_is_stopped() -> None:
    assert schedule(PLANS["every report"](7))[1] == 7 * REPORTS


def test_optuna_goes_on_in_blocks_that_grow(tmp_path: Path) -> None:
    study = blocks("every report", IN_MEMORY, "", seconds=60.0, least=2, most=25)
    assert [block.trials for block in study.blocks] == [2, 20, 25]


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
