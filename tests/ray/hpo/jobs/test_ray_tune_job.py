"""Searchers and schedulers of Ray Tune's and samplers of Optuna's as jobs: what they try, stop, record and resume."""

from __future__ import annotations

from pathlib import Path

from ray.tune.search.optuna import OptunaSearch

from tests.support.hpo.jobs.ray_tune_job import ASHA, fitted, units


def test_on_gangs_of_ray_workers(ray_cluster: None, tmp_path: Path) -> None:
    found = fitted(tmp_path, searcher=OptunaSearch, scheduler=ASHA, max_parallel_jobs=2, workers=1)
    assert found["status"] == ("Completed", "")
    assert len(units(found)) == 9
    assert {9} < set(units(found)) <= {1, 3, 9}
