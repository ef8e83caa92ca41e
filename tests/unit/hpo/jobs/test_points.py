"""Points to evaluate as a job: its first trials have them, whatever searches, runs at once or dies; and its doors."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from ray.train import ScalingConfig

from hpo import CategoricalParameter, HyperparameterTuner
from hpo.job_file.reading import read_job
from tests.support.refusals import refuses
from tests.support.small_job import write_job
from trainers import ConfigurationError, XGBoostTrainer


def test_a_job_file_has_them(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    job = yaml.safe_load(path.read_text())
    job["tuning"]["points_to_evaluate"] = [{"eta": 0.5}]
    path.write_text(yaml.safe_dump(job))
    assert HyperparameterTuner(**read_job(path).arguments()).points_to_evaluate == [{"eta": 0.5}]
    for points, names in (
        ([{"eta": 7}], ("points_to_evaluate[0]", "eta", "7", "ContinuousParameter")),
        ([{"eta": 0.5}] * 3, ("points_to_evaluate", "3", "2", "max_jobs")),
        ({"eta": 0.5}, ("points_to_evaluate", "list", "[{eta: 0.3}]")),
    ):
        job["tuning"]["points_to_evaluate"] = points
        path.write_text(yaml.safe_dump(job))
        with refuses(ConfigurationError, field=names) as refused:
            read_job(path).arguments()
        assert re.search(r"line \d+", str(refused.value))


def test_a_grid_has_no_place_for_them() -> None:
    with refuses(ConfigurationError, field=("points_to_evaluate", "strategy"), value="Grid", remedy="Random"):
        HyperparameterTuner(
            XGBoostTrainer(
                scaling=ScalingConfig(num_workers=0),
                hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3},
            ),
            "validation:auc",
            {"eta": CategoricalParameter([0.1, 0.2])},
            strategy="Grid",
            points_to_evaluate=[{"eta": 0.1}],
        )
