"""A grid as a job: its number of trials, its record, its resume, and its doors."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from hpo import HyperparameterTuner, IntegerParameter
from hpo.job_file.reading import read_job
from hpo.strategies.grid_strategy import GridStrategy
from hpo.strategies.registry import configurations_for
from tests.support.hpo.jobs.grid_job import grid
from tests.support.refusals import refuses
from tests.support.small_job import write_job
from trainers import ConfigurationError


def test_a_wrong_number_of_trials_is_refused(tmp_path: Path) -> None:
    with refuses(ConfigurationError, field=("max_jobs", "Grid"), value=5, remedy="6"):
        grid(tmp_path, max_jobs=5)


def test_a_job_file_has_it(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    job = yaml.safe_load(path.read_text())
    del job["tuning"]["max_jobs"]
    job["tuning"].pop("hyperband", None)
    ranges = {"max_depth": {"type": "integer", "min": 1, "max": 2}, "eta": {"type": "categorical", "values": [0.5, 1]}}
    job["trainer"]["hyperparameters"]["num_round"] = 3
    job["tuning"] |= {"strategy": "Grid", "ranges": ranges}
    path.write_text(yaml.safe_dump(job))
    tuner = HyperparameterTuner(**read_job(path).arguments())
    assert (tuner.max_jobs, tuner.plan().trials) == (4, 4)
    job["tuning"]["ranges"]["eta"] = {"type": "continuous", "min": 0.1, "max": 1}
    path.write_text(yaml.safe_dump(job))
    with refuses(
        ConfigurationError, field=("eta", "Grid"), value="continuous", remedy=("step", "categorical")
    ) as refused:
        read_job(path)
    assert re.search(r"line \d+", str(refused.value))


def test_repeats_of_a_grid_are_counted_in_trials(tmp_path: Path) -> None:
    assert grid(tmp_path, repeats=3).max_jobs == grid(tmp_path, repeats=3, max_jobs=18).max_jobs == 18
    with refuses(ConfigurationError, field=("max_jobs", "repeats", "3"), value=6, remedy="18"):
        grid(tmp_path, repeats=3, max_jobs=6)


def test_a_grid_and_its_repeats_are_no_more_trials_than_a_job_has() -> None:
    depths = {"max_depth": IntegerParameter(1, 2000)}
    with refuses(ConfigurationError, field=("repeats", "200000"), value=100, remedy="100000"):
        configurations_for(GridStrategy(), depths, 100, None)
    assert configurations_for(GridStrategy(), depths, 50, None) == 2000
