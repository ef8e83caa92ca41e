"""How large a cluster to take: the words, the tables, and searches that are run once."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console

from experiments.cluster_size import (
    Found,
    advice_table,
    page,
    page_tables,
    parsed,
    result,
    run,
    searches_table,
    verdict,
)
from experiments.shared.benchmark import write
from experiments.shared.network import Setting
from experiments.shared.problems import problems
from experiments.shared.published import Options, Steps
from experiments.shared.searches import Outcome, Searches
from experiments.shared.tradeoff import by_deadline
from hpo.record.store import Store
from tests.support.refusals import mentions, refuses
from trainers import Trainer


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


def in_hand(workers: int, units: int) -> Trainer:
    """Return the network's trainer with its workers here. Gangs of several sizes: tests/hpo/jobs/test_sizes.py."""
    return Setting(name="image", workers=workers, asynchronous=True).trainer(units, in_hand=True)


def test_each_size_is_searched_once_and_the_size_is_tuned(tmp_path: Path) -> None:
    options = Options(quick=True, out=tmp_path)
    dataset = options.images()
    problem = replace(problems(options)["image"], jobs=4, max_resource=3, units=3, trainer=in_hand)
    console = Console(file=io.StringIO())
    for _ in range(2):
        with Steps(tmp_path, console.print) as steps:
            searches = Searches(steps=steps, folder=tmp_path, console=console)
            came = run(problem, dataset, [1, 2], options, searches)
        with Store(searches.store) as store:
            assert len(store.jobs()) == 3
    with Store(searches.store) as store:
        tried = [trial.hyperparameters["num_workers"] for trial in store.trials(came.tuned[0].job) if trial.number >= 0]
    assert {*tried} <= {1, 2}
    assert came.tuned[0].best["num_workers"] in tried
    assert result(came, math.inf, math.inf)["size_tuned"]
    shown = page(came, searches, math.inf, math.inf).html()
    assert "size tuned too" in shown
