"""Programs without checkpoints in jobs that pause trials: what is said, before and after, and what does not pause."""

from __future__ import annotations

from pathlib import Path

from ray.tune.schedulers import ASHAScheduler

from tests.support.refusals import mentions
from tests.support.script_job import WITHOUT, ScriptJob
from tests.support.script_programs import started_with

ASHA = (ASHAScheduler, {"max_t": 9, "grace_period": 1})
PAUSES = "SM_CHECKPOINT_DIR"
"""The warning about pauses is the one with this name."""


def test_a_strategy_that_pauses_no_trial_starts_each_once_and_another_says_what_it_costs(tmp_path: Path) -> None:
    once = ScriptJob(tmp_path / "once", WITHOUT, strategy="Random")
    trials = once.fit()
    tuned = [start for start in once.starts if start != "0.1"]  # The probe's and the un-tuned run's.
    assert sorted(tuned) == sorted(str(trial.hyperparameters["eta"]) for trial in trials)
    assert not any(trial.details.keys() - {"no_model"} for trial in trials)
    assert "warning: " not in once.printed
    paused = ScriptJob(tmp_path / "paused", WITHOUT, strategy="Hyperband", static={"seconds": 0.3})
    trials = paused.fit()
    again = {trial.trial_id: trial.details.get("units_trained_again", 0) for trial in trials}
    assert any(again.values())
    told = [line for line in paused.printed.splitlines() if "warning: " in line]
    assert len(told) == 2
    mentions(told[0], "Hyperband", PAUSES)
    mentions(told[1], "checkpoint")
    (first,) = [name for name in again if name in told[1]]
    assert again[first]


def test_on_gangs_of_ray_workers_each_trial_goes_on_where_it_stands(ray_cluster: None, tmp_path: Path) -> None:
    job = ScriptJob(
        tmp_path, WITHOUT, workers=1, static={"seconds": 0.1}, scheduler=ASHA, max_jobs=9, max_parallel_jobs=2
    )
    trials = job.fit()
    assert len(trials) == 9
    assert {trial.resource for trial in trials} > {9}
    tuned = [start for start in job.starts if start != "0.1"]
    assert sorted(tuned) == sorted(str(trial.hyperparameters["eta"]) for trial in trials)
    assert not any(trial.details.keys() - {"no_model"} for trial in trials)
    assert PAUSES not in job.printed
    assert started_with(f"STARTS={job.folder / 'starts'}", "train.py") == []
