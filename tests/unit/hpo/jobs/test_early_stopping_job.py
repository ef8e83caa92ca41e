"""Early stopping by the median rule as a job: its record, its resume, its doors, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from hpo import HyperparameterTuner
from hpo.job_file.reading import read_job
from hpo.strategies.hyperband import Plan
from tests.support.hpo.jobs.early_stopping_job import tuner
from tests.support.refusals import refuses
from tests.support.small_job import write_job
from trainers import ConfigurationError


def test_a_job_file_has_it(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    job = yaml.safe_load(path.read_text())
    job["trainer"]["hyperparameters"]["num_round"] = 27
    job["tuning"] |= {"strategy": "Random", "early_stopping_type": "Auto", "max_jobs": 5, "hyperband": None}
    path.write_text(yaml.safe_dump(job))
    plan = HyperparameterTuner(**read_job(path).arguments()).plan()
    assert (plan.apart, plan.brackets[0].rungs, plan.resource) == (True, (3, 9, 27), 135)
    job["tuning"] |= {"strategy": "Hyperband"}
    path.write_text(yaml.safe_dump(job))
    with refuses(ConfigurationError, field=("tuning", "Hyperband"), value="Auto", remedy="Off") as refused:
        read_job(path).arguments()
    assert re.search(r"line \d+", str(refused.value))


def test_without_it_the_plan_is_as_it_was(tmp_path: Path) -> None:
    made = tuner(tmp_path)
    made.early_stopping_type = "Off"
    assert made.plan() == Plan(brackets=made.plan().brackets, max_resource=9)
    assert made.plan().brackets[0].rungs == (9,)
