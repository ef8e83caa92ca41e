"""ASHA as a job: its trials and what is said of them, its record, its resume, and its doors."""

from __future__ import annotations

from pathlib import Path

import yaml

from hpo import (
    HyperparameterTuner,
)
from hpo.job_file.reading import read_job
from tests.support.hpo.jobs.asha_job import tuner
from tests.support.refusals import refuses
from tests.support.small_job import write_job
from trainers import ConfigurationError


def test_what_it_does_not_take_is_refused(tmp_path: Path) -> None:
    with refuses(ConfigurationError, field=("early_stopping_type", "ASHA"), value="Auto", remedy="Off"):
        tuner(tmp_path, early_stopping_type="Auto")


def test_a_job_file_has_it(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    job = yaml.safe_load(path.read_text())
    job["tuning"] |= {"strategy": "ASHA", "hyperband": {"max_resource": 9, "min_resource": 1}, "max_jobs": 20}
    path.write_text(yaml.safe_dump(job))
    made = HyperparameterTuner(**read_job(path).arguments())
    assert (made.strategy, made.plan().eta, made.plan().brackets[0].sizes) == ("ASHA", 3, (20, 6, 2))
    job["tuning"]["strategy"] = "Random"
    path.write_text(yaml.safe_dump(job))
    with refuses(ConfigurationError, field=("hyperband", "strategy"), value="Random", remedy=("Hyperband", "ASHA")):
        read_job(path)
