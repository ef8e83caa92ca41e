"""The closing table of the blog's tuning job: its figures, its words, and a job that is not run again."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.shared import blog
from experiments.shared.benchmark import write
from experiments.shared.network import Setting
from experiments.shared.problems import problems
from experiments.shared.published import Options, Steps
from experiments.shared.searches import Outcome, Searches
from experiments.tune_distributed import (
    COLUMNS,
    Found,
    Way,
    against,
    beside_the_blog,
    closing,
    headline,
    page_tables,
    reproduced,
    result,
    verdict,
)
from hpo.record.store import JobRow, LedgerRow, Store, TrialRow
from tests.support.experiments.tune_distributed import AIM, few, small
from tests.support.refusals import mentions, missing_names
from trainers.datasets import load


def outcome(
    validation: float,
    worker_seconds: float,
    *,
    error: float | None = 0.02,
    units: int = 30,
    gangs: int = 1,
    trials: int = 30,
    job: str = "",
) -> Outcome:
    return Outcome(
        validation=validation,
        test=validation - 0.01,
        standard_error=error,
        worker_seconds=worker_seconds,
        training=worker_seconds / 2,
        gangs=gangs,
        seconds=worker_seconds / 3,
        units=units,
        best={},
        job=job,
        trials={"Completed": trials},
    )


def found(
    tmp_path: Path, untuned: Sequence[float], full: Sequence[float], cut: Sequence[float], equal: Sequence[float]
) -> Found:
    """A score a seed in each way; the searches to the end take 900 units, the others about 330."""
    ways = {
        Way.UNTUNED: [outcome(each, 60, units=150, trials=1) for each in untuned],
        Way.TO_THE_END: [outcome(each, 600, units=900, gangs=2, job="all") for each in full],
        Way.EQUAL: [
            outcome(each, 180 + 60 * seed, units=330, trials=11, job="as-many") for seed, each in enumerate(equal)
        ],
        Way.HYPERBAND: [outcome(each, 180 + 60 * seed, units=333) for seed, each in enumerate(cut)],
    }
    return Found(problem=problems(Options(out=tmp_path))["xgboost"], rows=100, synthetic=False, outcomes=ways)


def test_the_table_tells_means_and_spreads(tmp_path: Path) -> None:
    came = found(tmp_path, (0.70, 0.72), (0.80, 0.82), (0.79, 0.81), (0.78, 0.80))
    table = {row[0]: row[1:] for row in closing(came)}
    assert {len(row) + 1 for row in table.values()} == {len(COLUMNS)}
    spread = "± 0.0141"
    assert table["validation:auc"] == (f"0.7100 {spread}", f"0.8100 {spread}", f"0.7900 {spread}", f"0.8000 {spread}")
    assert table["configurations"] == ("1", "30", "11", "30")
    assert table["units trained"] == ("150", "900", "330", "333")
    assert table["billed worker-minutes"] == ("1.00", "10.00", "3.50 ± 0.71", "3.50 ± 0.71")
    assert table["gangs"] == ("1.0", "2.0", "1.0", "1.0")


def test_hyperband_is_compared_pair_by_pair(tmp_path: Path) -> None:
    """Seeds differ by 0.02; pairs of a seed do not."""
    untuned, full, equal = against(found(tmp_path, (0.70, 0.72), (0.80, 0.82), (0.79, 0.81), (0.78, 0.81)))
    assert untuned[0] == "without tuning"
    assert untuned[1].startswith("+0.0900 ± 0.0000, better")
    assert full[1].startswith("-0.0100 ± 0.0000, worse")
    assert missing_names(mentions(equal[1], "+0.0050 ± 0.0050", "standard error"), "better")
    assert full[3:5] == ("0.37 times", "0.35 times")


@pytest.mark.parametrize(
    ("equal", "names", "beaten"),
    [
        ((0.78, 0.79), ("+0.0150 ± 0.0050", "better", "3.0 times"), False),
        ((0.79, 0.82), ("-0.0050 ± 0.0050",), True),
        ((0.81, 0.82), ("-0.0150 ± 0.0050", "worse", "3.0 times"), True),
    ],
)
def test_the_verdict_says_what_the_figures_allow(
    tmp_path: Path, equal: tuple[float, ...], names: tuple[str, ...], beaten: bool
) -> None:
    verdict_ = verdict(found(tmp_path, (0.70, 0.72), (0.80, 0.82), (0.79, 0.81), equal))
    mentions(verdict_, "0.7100", "0.8000", "Hyperband", "+0.0900 ± 0.0000", "better", "2 seeds")
    mentions(verdict_, "37%", "rounds", "30% to 40%", "worker-seconds", "gangs: 1 for 2")
    mentions(verdict_, *names, "standard error")
    assert (not missing_names(verdict_, "not beat")) is beaten


def test_the_verdict_says_when_the_search_for_as_many_units_was_read(tmp_path: Path) -> None:
    came = found(tmp_path, [0.70], [0.80], [0.79], [0.78])
    assert missing_names(verdict(came), "record")
    equal = [replace(came.outcomes[Way.EQUAL][0], job="all")]
    mentions(verdict(replace(came, outcomes={**came.outcomes, Way.EQUAL: equal})), "record")


def test_the_headline_has_the_four_scores(tmp_path: Path) -> None:
    said = headline(found(tmp_path, [0.70], [0.80], [0.79], [0.78]))
    mentions(said, "XGBoost", "validation:auc", "0.7000", "0.7900", "Hyperband", "0.7800", "random", "0.8000")


def test_a_gain_within_the_noise_is_called_that(tmp_path: Path) -> None:
    came = found(tmp_path, [0.79], [0.80], [0.80], [0.80])
    mentions(verdict(came), "+0.0100 ± 0.0200", "standard error", "one score")
    untuned, *_ = against(came)
    assert missing_names(mentions(untuned[1], "+0.0100 ± 0.0200", "standard error", "one score"), "better")
    assert untuned[2] == "+0.0100"
    unknown = [replace(outcome(0.80, 3), standard_error=None)]
    assert "standard error" not in verdict(replace(came, outcomes={**came.outcomes, Way.HYPERBAND: unknown}))


def test_a_training_that_diverged_has_no_score_and_breaks_nothing(tmp_path: Path) -> None:
    came = found(tmp_path, [math.nan], [0.80], [0.80], [0.80])
    assert closing(came)[0][1] == "nan"
    mentions(verdict(came), "Hyperband", "score")
    said = mentions(compared_with_the_blog(came), 0.63, 0.78, "0.8000")
    assert missing_names(said, "not come", "nan") == ["not come", "nan"]
    assert result([came])
    nothing = found(tmp_path, [0.75], [0.80], [0.80], [math.nan])
    mentions(verdict(nothing), "nan", "Hyperband", "score")


def compared_with_the_blog(came: Found) -> str:
    """What is said of the blog's scores, without what is told of its own notebook."""
    before, aside, _ = reproduced(came).partition(blog.QUALITY_ASIDE)
    assert aside
    return before


def test_the_blogs_closing_table_stands_beside_ours_whole(tmp_path: Path) -> None:
    came = found(tmp_path, (0.75, 0.76), (0.80, 0.82), (0.79, 0.81), (0.78, 0.80))
    rows_ = beside_the_blog(came)
    assert [row[1:4] for row in rows_] == [("0.63", "0.78", "15%"), ("90", "30", "66%"), ("24", "12", "50%")]
    assert [row[4:] for row in rows_] == [
        ("0.7550 (without tuning)", "0.8000", "+0.0450"),
        ("10.00 (all to the end)", "3.50", "65%"),
        ("3.33 (all to the end)", "1.17", "65%"),
    ]
    said = reproduced(came)
    mentions(said, 0.63, "0.7550", 0.78, "0.8000", "0.743", "0.740", 22.5, 24)
    mentions(compared_with_the_blog(came), 0.63, "not come", "0.7550", 0.78, "0.8000")
    assert "generated" not in said
    mentions(reproduced(replace(came, synthetic=True)), "generated")
    near = found(tmp_path, [0.62], [0.80], [0.80], [0.80])
    assert missing_names(mentions(compared_with_the_blog(near), 0.63, "0.6200"), "not come")


def test_the_tables_of_the_docs_come_from_the_result_alone(tmp_path: Path) -> None:
    came = found(tmp_path, [math.nan], [0.80], [0.80], [0.80])
    options = {**asdict(Options(out=tmp_path)), "out": str(tmp_path)}
    tables = page_tables(json.loads(write(tmp_path, {"options": options, **result([came])}).read_text()))
    assert tables["xgboost-verdict"] == verdict(came)
    assert tables["xgboost-reproduced"] == reproduced(came)
    assert len(tables["xgboost-against"].splitlines()) == 5
    assert "| validation:auc | nan | 0.8000 | 0.8000 | 0.8000 |" in tables["xgboost-ways"]
    assert "| 0.63 | 0.78 | 15% |" in tables["xgboost-blog"]


def test_first_trials_without_a_score_are_told_as_that(tmp_path: Path) -> None:
    searches = Searches(steps=Steps(tmp_path, print), folder=tmp_path, console=Console(quiet=True))
    with Store(searches.store) as store:
        store.create_job(JobRow(name="all", created_at=0.0, spec=AIM))
        with store.writer("all") as writer:
            for number, status in enumerate(("Diverged", "Completed")):
                of: dict[str, Any] = {"job": "all", "trial_id": f"all-{number}"}
                writer.trial(TrialRow(**of, number=number, status=status, resource=3, objective=number or None))
                writer.ledger(
                    LedgerRow(**of, gang="g", kind="training", worker_seconds=9.0, at=1.0 + number, workers=3)
                )
    whole = replace(outcome(1.0, 18, job="all"), seconds=6.0, trials={"Completed": 1, "Diverged": 1})
    read = searches.first(whole, 1, small(tmp_path), few())
    assert math.isnan(read.validation)
    assert math.isnan(read.test)
    assert (read.best, read.trials, read.units) == ({}, {"Completed": 0, "Diverged": 1}, 3)
    assert (read.worker_seconds, read.training, read.seconds) == (9.0, 9.0, 3.0)


def test_quick_searches_run_one_trial_at_a_time(tmp_path: Path) -> None:
    """Else the bill of the first trials could not be told from that of the others."""
    assert {problem.parallel for problem in problems(Options(quick=True, out=tmp_path)).values()} == {1}


def test_a_training_that_diverges_is_kept_as_one_without_a_score(tmp_path: Path) -> None:
    problem = problems(Options(quick=True, out=tmp_path))["image"]
    steep = Setting(name="image", workers=4, asynchronous=True, changed={"lr": 1e12}).trainer(1, in_hand=True)
    with Steps(tmp_path, print) as steps:
        searches = Searches(steps=steps, folder=tmp_path, console=Console(quiet=True))
        lost = searches.train("lost", problem, load("digits"), trainer=steep, seed=1)
    assert math.isnan(lost.validation)
    assert math.isnan(lost.worker_seconds)
    kept = json.loads(write(tmp_path, {"lost": asdict(lost)}).read_text())["lost"]
    assert math.isnan(Outcome.read(kept).training)
