"""Faults of a job that a trial on a gang shows: the job ends, and does not pay for them again."""

from __future__ import annotations

from pathlib import Path

from hpo import CategoricalParameter
from tests.support.refusals import refuses
from tests.support.script_job import ScriptJob
from trainers import WarmbandError

PRINTS = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--eta", type=float)
print("loss:", parser.parse_args().eta, flush=True)
"""


def test_an_expression_that_takes_a_part_of_a_number_ends_the_job(ray_cluster: None, tmp_path: Path) -> None:
    job = ScriptJob(
        tmp_path,
        PRINTS,
        workers=2,
        static={"epochs": 1},
        trainer={"metric_definitions": [{"Name": "accuracy", "Regex": "loss: ([0-9.]+)"}]},
        ranges={"eta": CategoricalParameter([0.5, 9.5e-5, 0.02, 8.5e-5])},
        strategy="Grid",
        max_jobs=4,
        max_parallel_jobs=1,
    )
    with refuses(WarmbandError, field="'accuracy'", value="9.5e-05", remedy=r"loss: (\S+)"):
        job.fit()
    assert job.tuner.describe()["HyperParameterTuningJobStatus"] == "Failed"
    assert [trial.status for trial in job.trials()] == ["Completed", "Failed"]
