"""The best model of a job in MLflow's registry: what it came from, what it predicts, and that there is one of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import xgboost
from mlflow import MlflowClient
from typer.testing import CliRunner

from hpo import HyperparameterTuner
from hpo.cli.command import app
from hpo.record.store import Store
from tests.support.boosting import CHANNELS, make
from tests.support.hpo.trackers.registry import loaded
from tests.support.trainings import url


def search(folder: Path) -> HyperparameterTuner:
    """A small search that has ended."""
    tuner = make(0, max_jobs=3, store=url(folder), storage_path=str(folder), console=False)
    tuner.fit(CHANNELS, job_name="job")
    return tuner


def test_the_best_model_is_a_version_with_its_lineage_once(
    server: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    uri, _ = server
    tuner = search(tmp_path)
    made = tuner.register("churn model", uri)
    again = HyperparameterTuner.attach("job", store=url(tmp_path)).register("churn model", uri)
    assert made.new
    assert not again.new
    assert (made.version, made.run_id) == (again.version, again.run_id) == (1, made.run_id)
    best = tuner.best_training_job()
    client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    found = client.get_model_version("churn model", "1")
    with Store(url(tmp_path)) as store:
        job, acts = store.job("job"), [act for act in store.acts("job") if act.kind == "registered"]
        trial = next(each for each in store.trials("job") if each.trial_id == best)
    assert found.tags["warmband.job"] == "job"
    assert found.tags["warmband.trial"] == best
    assert found.tags["warmband.seed"] == "1729"
    assert found.tags["warmband.metric"] == "validation:auc"
    assert float(found.tags["warmband.value"]) == trial.objective
    assert found.tags["warmband.commit"] == job.spec["environment"]["commit"]
    assert found.tags["warmband.data.train"] == job.spec["inputs"]["train"]["fingerprint"]
    run = client.get_run(made.run_id)
    assert run.info.status == "FINISHED"
    assert float(run.data.params["eta"]) == trial.hyperparameters["eta"]
    assert run.data.metrics["validation:auc"] == trial.objective
    [act] = acts
    assert act.arguments == {"model": "churn model", "version": 1, "trial": best, "tracking_uri": uri}
    rows = xgboost.DMatrix(CHANNELS["validation"].drop(columns="y"))
    expected = tuner.best_estimator().model().predict(rows)
    np.testing.assert_array_equal(loaded(made.uri, uri).predict(rows), expected)
    said = CliRunner().invoke(
        app, ["register", "job", "--model", "churn model", "--tracking-uri", uri, "--store", url(tmp_path)]
    )
    assert said.exit_code == 0, said.output
    assert said.stdout == f"Registered before: models:/churn model/1 in {uri}\n"
