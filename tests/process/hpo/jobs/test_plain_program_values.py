"""A job of a program whose hyperparameters and budgets come out of NumPy and pathlib."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.script_job import WITHOUT, ScriptJob


def test_a_program_gets_python_s_own_values(tmp_path: Path) -> None:
    job = ScriptJob(
        tmp_path, WITHOUT, static={"epochs": np.int64(2), "seconds": np.float32(0)}, strategy="Random", max_jobs=2
    )
    trials = job.fit()
    assert [trial.status for trial in trials] == ["Completed", "Completed"]
    assert {trial.resource for trial in trials} == {2}
    assert "np." not in job.printed
