"""The best model of a job in MLflow's registry: what it came from, what it predicts, and that there is one of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import mlflow
import numpy as np
import pytest
import torch
import xgboost
from mlflow import MlflowClient
from typer.testing import CliRunner

from hpo import HyperparameterTuner
from hpo.cli.command import app
from hpo.record.store import Store
from hpo.sagemaker import register_where_asked
from hpo.trackers import MLflow
from hpo.trackers.registry import Lineage, register
from tests.support.boosting import CHANNELS, make
from tests.support.refusals import mentions, refuses
from tests.support.small_job import write_job
from tests.support.trainings import training, url
from trainers.errors import ConfigurationError, WarmbandError

LINEAGE = Lineage(
    job="job",
    created_at=1.5,
    trial="job-003",
    resource=9,
    seed=7,
    hyperparameters={"lr": 0.5},
    metric="validation:loss",
    value=0.25,
    data={"train": "abc"},
    environment={"commit": "c0ffee", "warmband": "0.1.0"},
)


def search(folder: Path) -> HyperparameterTuner:
    """A small search that has ended."""
    tuner = make(0, max_jobs=3, store=url(folder), storage_path=str(folder), console=False)
    tuner.fit(CHANNELS, job_name="job")
    return tuner


def loaded(uri: str, tracking_uri: str) -> xgboost.Booster:
    mlflow.set_tracking_uri(tracking_uri)
    mlflow.set_registry_uri(tracking_uri)
    try:
        return mlflow.xgboost.load_model(uri)
    finally:
        mlflow.set_tracking_uri(None)
        mlflow.set_registry_uri(None)


@pytest.mark.process
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
    assert said.output == f"Registered before: models:/churn model/1 in {uri}\n"


def test_a_training_and_the_job_of_a_file_are_registered_in_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    job = training(tmp_path)
    job.fit(CHANNELS, job_name="solo")
    made = job.register("solo", uri)
    assert (made.version, made.new) == (1, True)
    assert made.uri == "models:/solo/1"
    rows = xgboost.DMatrix(CHANNELS["validation"].drop(columns="y"))
    np.testing.assert_array_equal(loaded(made.uri, uri).predict(rows), job.model().predict(rows))
    other = register(torch.nn.Identity, LINEAGE, "solo", uri)
    assert other.version == 2
    assert register(pytest.fail, LINEAGE, "solo", uri).version == 2  # type: ignore[arg-type]
    assert MlflowClient(uri, uri).get_model_version("solo", "2").tags["warmband.commit"] == "c0ffee"

    # A job file asks for it at its job's end.
    file = write_job(tmp_path)
    trackers = f"trackers:\n  mlflow: {{tracking_uri: '{uri}', register_as: churn}}\n"
    file.write_text(file.read_text().replace("type: xgboost", "type: xgboost\n  num_workers: 0") + trackers)
    said = CliRunner().invoke(app, ["tune", str(file), "--store", url(tmp_path)])
    assert said.exit_code == 0, said.output
    mentions(said.output, "models:/churn/1")
    with Store(url(tmp_path)) as store:
        [act] = [act for act in store.acts("tiny") if act.kind == "registered"]
    found = MlflowClient(uri, uri).get_model_version("churn", "1")
    assert (act.arguments["trial"], found.tags["warmband.job"]) == (found.tags["warmband.trial"], "tiny")

    away = MLflow("http://127.0.0.1:9", register_as="churn")
    told: list[str] = []
    register_where_asked([away], HyperparameterTuner.attach("tiny", store=url(tmp_path)).register, told.append)
    assert told[0].startswith("warning: ")
    mentions(told[0], "churn", "http://127.0.0.1:9")
    with refuses(ConfigurationError, field="register_as", value="a/b", remedy="255"):
        MLflow(register_as="a/b")


def test_what_cannot_be_registered_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with refuses(ConfigurationError, field="model", value="builtins.dict", remedy=("XGBoost", "PyTorch")):
        register(dict, LINEAGE, "dict", uri)
    assert not MlflowClient(uri, uri).search_registered_models()
    with refuses(ConfigurationError, field="model_name", value="a/b", remedy="255"):
        register(dict, LINEAGE, "a/b", uri)
    with refuses(ConfigurationError, field="model_name", value="x' or name != '", remedy="255"):
        register(dict, LINEAGE, "x' or name != '", uri)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with refuses(WarmbandError, field="churn", value="127.0.0.1:9", remedy="registry") as caught:
        register(dict, LINEAGE, "churn", "http://me:secret@127.0.0.1:9")
    assert "secret" not in str(caught.value)
