"""A grid as a job: its number of trials, its record, its resume, and its doors."""

from __future__ import annotations

from pathlib import Path

from hpo import HyperparameterTuner
from hpo.record.store import Store
from tests.support.driving import CHANNELS
from tests.support.hpo.jobs.grid_job import grid
from tests.support.refusals import refuses
from trainers import ConfigurationError

POINTS = [{"eta": eta, "max_depth": depth} for eta in (0.5, 0.1, 1.0) for depth in (1, 2)]


def test_every_combination_is_a_trial_in_the_same_order_for_any_number_at_once(tmp_path: Path) -> None:
    for name, parallel in (("one", 1), ("three", 3)):
        tuner = grid(tmp_path, max_parallel_jobs=parallel)
        assert tuner.max_jobs == 6
        tuner.fit(CHANNELS, job_name=name)
        described = tuner.describe()["HyperParameterTuningJobConfig"]
        assert described["Strategy"] == "Grid"
        assert described["ResourceLimits"]["MaxNumberOfTrainingJobs"] == 6
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        one, three = ([row for row in store.trials(name) if row.number >= 0] for name in ("one", "three"))
    assert [row.hyperparameters for row in one] == [row.hyperparameters for row in three] == POINTS
    assert [row.objective for row in one] == [row.objective for row in three]
    assert {row.status for row in one} == {"Completed"}


def test_its_record_is_made_again_and_has_no_more_trials(tmp_path: Path) -> None:
    tuner = grid(tmp_path)
    tuner.fit(CHANNELS, job_name="job")
    again = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/store.db")
    assert (again.strategy, again.max_jobs, again.plan()) == ("Grid", 6, tuner.plan())
    with refuses(ConfigurationError, field=("max_jobs", "grid"), remedy="6"):
        again.resume(inputs=CHANNELS, max_jobs=9)
