"""Programs without checkpoints in jobs that pause trials: what is said, before and after, and what does not pause."""

from __future__ import annotations

from pathlib import Path

from tests.support.refusals import mentions
from tests.support.script_job import WITHOUT, ScriptJob

PAUSES = "SM_CHECKPOINT_DIR"
"""The warning about pauses is the one with this name."""


def test_a_strategy_that_pauses_no_trial_starts_each_once_and_another_says_what_it_costs(tmp_path: Path) -> None:
    once = ScriptJob(tmp_path / "once", WITHOUT, strategy="Random")
    trials = once.fit()
    tuned = [start for start in once.starts if start != "0.1"]  # The probe's and the un-tuned run's.
    assert sorted(tuned) == sorted(str(trial.hyperparameters["eta"]) for trial in trials)
    assert not any(trial.details for trial in trials)
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
