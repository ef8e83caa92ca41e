"""Programs without checkpoints in jobs that pause trials: what is said, before and after, and what does not pause."""

from __future__ import annotations

from pathlib import Path

from ray.tune.schedulers import ASHAScheduler

from tests.support.script_job import WITHOUT, ScriptJob
from tests.support.script_programs import started_with

ASHA = (ASHAScheduler, {"max_t": 9, "grace_period": 1})

PAUSES = "SM_CHECKPOINT_DIR"
"""The warning about pauses is the one with this name."""


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
