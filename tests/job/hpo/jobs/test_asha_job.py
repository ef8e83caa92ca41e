"""ASHA as a job: its trials and what is said of them, its record, its resume, and its doors."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from hpo import (
    HyperparameterTuner,
    TuningJobCompletionCriteriaConfig,
)
from hpo.record.store import Store, TrialRow
from hpo.suggestions import FEWEST_TRIALS
from tests.support.driving import CHANNELS
from tests.support.hpo.jobs.asha_job import tuner
from tests.support.refusals import mentions


def rows(folder: Path, name: str = "job") -> list[TrialRow]:
    with Store(f"sqlite:///{folder}/store.db") as store:
        return [row for row in store.trials(name) if row.number >= 0]


def test_a_third_of_each_rung_goes_on_and_what_depends_on_timing_is_said(tmp_path: Path) -> None:
    said = io.StringIO()
    made = tuner(tmp_path, console=Console(file=said, width=200), verbose=True)
    made.fit(CHANNELS, job_name="job")
    found = rows(tmp_path)
    assert [sum(row.resource >= rung for row in found) for rung in (1, 3, 9)] == [9, 3, 1]
    assert [row.status for row in found].count("Stopped") == 8
    assert sorted(number for row in found for kind in row.turns.values() for number, _ in kind) == list(range(1, 27))
    words = " ".join(said.getvalue().split())
    mentions(words, "warning", "ASHA", "seed", "Hyperband")
    mentions(words, "21", "81", "9", "26%")
    mentions(words, "timing")
    assert made.describe()["Summary"]["depends_on_timing"]
    config = made.describe()["HyperParameterTuningJobConfig"]
    assert (config["Strategy"], config["StrategyConfig"]) == (
        "ASHA",
        {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
    )


def test_one_trial_at_a_time_it_is_the_same_again_and_a_larger_job_keeps_what_was_decided(tmp_path: Path) -> None:
    tuner(tmp_path).fit(CHANNELS, job_name="job")
    tuner(tmp_path).fit(CHANNELS, job_name="again")
    first = {row.number: (row.resource, row.objective, row.turns) for row in rows(tmp_path)}
    assert {row.number: (row.resource, row.objective, row.turns) for row in rows(tmp_path, "again")} == first
    attached = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/store.db")
    assert (attached.strategy, attached.plan()) == ("ASHA", tuner(tmp_path).plan())
    attached.resume(inputs=CHANNELS, max_jobs=13)
    larger = rows(tmp_path)
    assert len(larger) == 13
    assert {row.number: (row.resource, row.objective, row.turns) for row in larger[:9]} == first
    assert max(row.resource for row in larger[9:]) == 9


def test_a_model_reads_whatever_has_come(tmp_path: Path) -> None:
    tuner(tmp_path, suggestions="model", max_jobs=11, max_parallel_jobs=2).fit(CHANNELS, job_name="job")
    tuner(tmp_path, max_jobs=11).fit(CHANNELS, job_name="random")
    with_model, at_random = rows(tmp_path), rows(tmp_path, "random")
    same = [one.hyperparameters == other.hyperparameters for one, other in zip(with_model, at_random, strict=True)]
    assert (same[:FEWEST_TRIALS], same[-1]) == ([True] * FEWEST_TRIALS, False)


def test_a_target_ends_it_at_the_first_value_that_meets_it(tmp_path: Path) -> None:
    criteria = TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.01)
    made = tuner(tmp_path, completion_criteria_config=criteria, max_parallel_jobs=2)
    made.fit(CHANNELS, job_name="job")
    assert len(rows(tmp_path)) < 9
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        job = store.job("job")
    assert job.status == "Completed"
    mentions(job.reason, "target_objective_metric_value", "0.01")
