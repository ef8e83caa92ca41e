"""The closing table of the blog's tuning job: its figures, its words, and a job that is not run again."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from ray.train import ScalingConfig
from rich.console import Console

from experiments.problems import problems
from experiments.published import Options, Steps
from experiments.searches import Outcome, Searches, rows
from experiments.tune_distributed import COLUMNS, Found, Way, closing, result, run, verdict
from hpo.analytics import tuned_trials
from hpo.store import Store
from trainers import XGBoostTrainer
from trainers.datasets import load


def outcome(validation: float, worker_seconds: float, *, error: float | None = 0.02) -> Outcome:
    return Outcome(
        validation=validation,
        test=validation - 0.01,
        standard_error=error,
        worker_seconds=worker_seconds,
        seconds=worker_seconds / 3,
        units=30,
        best={},
        job="",
        trials={},
    )


def found(tmp_path: Path, *, untuned: Sequence[Outcome], full: Sequence[Outcome], cut: Sequence[Outcome]) -> Found:
    ways = {Way.UNTUNED: untuned, Way.TO_THE_END: full, Way.HYPERBAND: cut}
    return Found(problem=problems(Options(out=tmp_path))["xgboost"], rows=100, outcomes=ways)


def test_the_table_tells_means_spreads_and_improvements(tmp_path: Path) -> None:
    came = found(
        tmp_path,
        untuned=[outcome(0.70, 60), outcome(0.72, 60)],
        full=[outcome(0.80, 600), outcome(0.82, 600)],
        cut=[outcome(0.79, 180), outcome(0.81, 240)],
    )
    table = closing(came)
    assert {len(row) for row in table} == {len(COLUMNS)}
    quality, _, cost, wall, _ = table
    assert quality[1:6] == ("0.7100 ± 0.0141", "0.8100 ± 0.0141", "0.8000 ± 0.0141", "+0.0900", "-0.0100")
    assert cost[1:6] == ("1.00 ± 0.00", "10.00 ± 0.00", "3.50 ± 0.71", "3.50 times", "0.35 times")
    assert wall[4:6] == ("3.50 times", "0.35 times")
    said = verdict(came)
    assert "0.7100 without tuning, 0.8000 tuned by Hyperband (+0.0900" in said
    assert "means of 2 seeds" in said
    assert "35% of what" in said
    assert "which is more" not in said


def test_a_gain_within_the_noise_is_called_that(tmp_path: Path) -> None:
    came = found(tmp_path, untuned=[outcome(0.79, 1)], full=[outcome(0.80, 9)], cut=[outcome(0.80, 3)])
    assert "one such score has a standard error of 0.0200, which is more" in verdict(came)
    unknown = [replace(outcome(0.80, 3), standard_error=None)]
    assert "standard error" not in verdict(replace(came, outcomes={**came.outcomes, Way.HYPERBAND: unknown}))


def test_a_training_that_diverged_has_no_score_and_breaks_nothing(tmp_path: Path) -> None:
    came = found(tmp_path, untuned=[outcome(math.nan, 1)], full=[outcome(0.80, 9)], cut=[outcome(0.80, 3)])
    assert closing(came)[0][1] == "nan"
    assert verdict(came)
    assert result([came])


def test_both_searches_try_the_same_configurations_and_are_run_once(tmp_path: Path) -> None:
    """In hand, on few rows: the trials, the stops, the table; and a second run that only reads."""
    options = Options(quick=True, out=tmp_path)
    dataset = load("bank-marketing-synthetic")
    dataset = replace(dataset, train=dataset.train[:500], validation=dataset.validation[:200])
    problem = replace(
        problems(options)["xgboost"],
        jobs=9,
        parallel=1,
        max_resource=9,
        units=9,
        trainer=lambda workers, units: XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": units},
        ),
    )
    printed = io.StringIO()
    console = Console(file=printed)
    for again in range(2):
        with Steps(tmp_path, console.print) as steps:
            searches = Searches(steps=steps, folder=tmp_path, console=console)
            came = run(problem, dataset, options, searches)
        with Store(searches.store) as store:
            assert len(store.jobs()) == 2, f"in run {again}"
    full, cut = came.outcomes[Way.TO_THE_END][0], came.outcomes[Way.HYPERBAND][0]
    with Store(searches.store) as store:
        tried = [[trial.hyperparameters for trial in tuned_trials(store, each.job)] for each in (full, cut)]
    assert tried[0] == tried[1]
    assert full.units == 81
    assert cut.units < 81
    assert cut.trials["Stopped"] > 0
    assert printed.getvalue().count("done before") == 3
    assert rows(dataset) == came.rows == 500
    assert verdict(came)
    assert came.outcomes[Way.UNTUNED][0].standard_error == pytest.approx(cut.standard_error, rel=0.5)
