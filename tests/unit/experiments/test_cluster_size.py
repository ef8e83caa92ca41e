"""How large a cluster to take: the words, the tables, and searches that are run once."""

from __future__ import annotations

import json
import math
from pathlib import Path

import typer

from experiments.cluster_size import (
    Found,
    advice_table,
    page_tables,
    parsed,
    result,
    searches_table,
    verdict,
)
from experiments.shared.benchmark import write
from experiments.shared.problems import problems
from experiments.shared.published import Options
from experiments.shared.searches import Outcome
from experiments.shared.tradeoff import by_deadline
from tests.support.refusals import mentions, refuses


def outcome(validation: float, seconds: float, worker_seconds: float, workers: int = 1) -> Outcome:
    return Outcome(
        validation=validation,
        test=validation,
        standard_error=0.02,
        worker_seconds=worker_seconds,
        training=worker_seconds / 2,
        gangs=1,
        seconds=seconds,
        units=30,
        best={"num_workers": workers},
        job="",
        trials={},
    )


def found(tmp_path: Path, **by_size: Outcome) -> Found:
    return Found(
        problem=problems(Options(out=tmp_path))["xgboost"],
        rows=100,
        by_size={int(size[1:]): [each] for size, each in by_size.items()},
        tuned=[outcome(0.78, 40, 60, workers=2)],
    )


def test_of_scores_that_cannot_be_told_apart_the_cheapest_size_is_taken(tmp_path: Path) -> None:
    came = found(tmp_path, _1=outcome(0.785, 40, 40), _3=outcome(0.79, 20, 60))
    any_time = mentions(verdict(came, math.inf, math.inf), "1 worker", "0.7850", "3 workers", "0.7900", "noise")
    mentions(any_time, "2 workers", "0.7800", "60 worker-seconds")
    mentions(verdict(came, 30, math.inf), "3 workers", "30 s", "0.7900", "60 worker-seconds")
    mentions(verdict(came, 50, 50), "1 worker", "50 s", "50 worker-seconds")


def test_what_no_limit_would_have_stopped_is_told(tmp_path: Path) -> None:
    came = found(tmp_path, _1=outcome(0.60, 10, 10), _3=outcome(0.79, 20, 60))
    mentions(verdict(came, 15, math.inf), "3 workers", "0.7900")
    none = verdict(came, 5, math.inf)
    mentions(none, "5 s", "10 s", "1 worker")


def test_the_tables_hold_every_search_and_when_to_take_it(tmp_path: Path) -> None:
    came = found(tmp_path, _1=outcome(0.785, 40, 40), _2=outcome(0.70, 50, 90), _3=outcome(0.79, 20, 60))
    table = searches_table(came)
    assert [row[0] for row in table.rows] == ["1 worker", "2 workers", "3 workers", "size tuned too"]
    assert [row[-1] for row in table.rows] == ["yes", "no", "yes", "no"]
    assert [row[:2] for row in advice_table(by_deadline(came.choices), "deadline").rows] == [
        (20, "3 workers"),
        (40, "1 worker"),
    ]


def test_the_tables_of_the_docs_come_from_the_result_alone(tmp_path: Path) -> None:
    came = found(tmp_path, _1=outcome(0.785, 40, 40), _2=outcome(math.nan, 50, 90), _3=outcome(0.79, 20, 60))
    kept = json.loads(write(tmp_path, result(came, math.inf, math.inf)).read_text())
    tables = page_tables(kept)
    assert tables["searches"].splitlines()[2:] == [
        "| 1 worker | 0.7850 ± 0.0200 | 0.7850 | 40.0 | 40.0 | 1 | yes |",
        "| 2 workers | NaN ± 0.0200 | nan | 50.0 | 90.0 | 1 | no |",
        "| 3 workers | 0.7900 ± 0.0200 | 0.7900 | 20.0 | 60.0 | 1 | yes |",
        "| size tuned too | 0.7800 ± 0.0200 | 0.7800 | 40.0 | 60.0 | 2 | no |",
    ]
    assert tables["by_deadline"].splitlines()[2:] == ["| 20.0 | 3 workers | 0.7900 |", "| 40.0 | 1 worker | 0.7850 |"]
    assert tables["by_budget"].splitlines()[2:] == ["| 40.0 | 1 worker | 0.7850 |"]


def test_sizes_are_whole_numbers() -> None:
    assert parsed("4, 1,2,2") == [1, 2, 4]
    for text in ("", "0,1", "a", "1.5"):
        with refuses(typer.BadParameter, value=repr(text), remedy="1,2,4"):
            parsed(text)
