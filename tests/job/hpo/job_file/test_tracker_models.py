"""Trackers and notices in a job file: what they become, and what is wrong with them, by line, before a job starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from hpo import HyperparameterTuner
from hpo.job_file.reading import read_job
from hpo.record.store import Store
from tests.support.hpo.job_file.tracker_models import (
    JOB,
    path,  # noqa: F401  # Fixtures.
)


def test_a_job_is_logged_as_it_is_recorded(path: Path) -> None:
    """The whole way: from the job file through training in hand to TensorBoard's files."""
    path.write_text(f"{JOB}trackers: {{tensorboard: {{folder: runs}}}}\n")
    spec = read_job(path)
    tuner = HyperparameterTuner(**spec.arguments())
    tuner.fit(spec.data.open(None), job_name=spec.name)
    with Store() as store:
        job, trials = store.job("churn"), [trial for trial in store.trials("churn") if trial.number >= 0]
        assert "tracker" not in str(job.spec)
        assert len(trials) == 5
        for trial in trials:
            found = EventAccumulator(str(path.parent / "runs" / "churn" / trial.trial_id)).Reload()
            steps = [event.step for event in found.Tensors("validation:auc")]
            assert steps == [report.step for report in store.reports("churn", trial.trial_id)]
    board = EventAccumulator(str(path.parent / "runs" / "churn")).Reload()
    [best] = board.Tensors("job/best")
    assert best.tensor_proto.float_val[0] == pytest.approx(job.summary["best"]["value"], rel=1e-6)
