"""Programs without checkpoints in jobs that pause trials: what is said, before and after, and what does not pause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray.tune.schedulers import ASHAScheduler

from tests.support.script_job import WITHOUT, ScriptJob

ASHA = (ASHAScheduler, {"max_t": 9, "grace_period": 1})


@pytest.mark.parametrize("options", [{"scheduler": ASHA}, {"early_stopping_type": "Auto", "strategy": "Random"}])
def test_what_only_stops_trials_starts_a_program_without_checkpoints_once_a_trial(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    job = ScriptJob(tmp_path, WITHOUT, static={"seconds": 0.02}, **options)
    trials = job.fit()
    assert {trial.resource for trial in trials} > {9}
    tuned = [start for start in job.starts if start != "0.1"]  # The probe's and the un-tuned run's.
    assert tuned == [str(trial.hyperparameters["eta"]) for trial in trials]
    assert not any("units_trained_again" in trial.details for trial in trials)
