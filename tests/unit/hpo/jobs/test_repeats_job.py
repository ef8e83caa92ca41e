"""Configurations that several trials train, as a job: its record and its words, killed and resumed, and its doors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import yaml
from ray.tune.schedulers import ASHAScheduler

from hpo import HyperparameterTuner
from hpo.job_file.reading import read_job
from tests.support.driving import tuner
from tests.support.refusals import refuses, refuses_each
from tests.support.small_job import write_job
from trainers import ConfigurationError


def test_a_job_file_has_them(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    job = yaml.safe_load(path.read_text())
    job["tuning"]["repeats"] = 2
    path.write_text(yaml.safe_dump(job))
    made = HyperparameterTuner(**read_job(path).arguments())
    assert (made.repeats, made.plan().trials) == (2, 2)
    job["tuning"]["repeats"] = 3
    path.write_text(yaml.safe_dump(job))
    with refuses(ConfigurationError, field=("max_jobs", "repeats"), value=2, remedy="3"):
        read_job(path).arguments()


def test_what_there_cannot_be_is_refused(tmp_path: Path) -> None:
    scheduler = ASHAScheduler(time_attr="training_iteration")
    theirs = {"strategy": "Bayesian", "strategy_config": None, "scheduler": scheduler}
    refused: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"repeats": 0}, ("repeats", 0, 1, 100)),
        ({"repeats": 2.0}, ("repeats", 2.0, 1, 100)),
        ({"repeats": 3, "max_jobs": 10}, ("max_jobs", 10, "repeats", 3, 9, 12)),
        ({"repeats": 3, **theirs}, ("repeats", 3, "RayTune")),
        ({"repeats": 3, "points_to_evaluate": [{"eta": 0.5}] * 4}, ("points_to_evaluate", 4, 3, "max_jobs")),
    ]
    refuses_each([(partial(tuner, tmp_path, **options), names) for options, names in refused], ConfigurationError)
