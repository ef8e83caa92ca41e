"""The best model of a job in MLflow's registry: what it came from, what it predicts, and that there is one of it."""

from __future__ import annotations

from pathlib import Path

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
from hpo.trackers.registry import register
from tests.support.boosting import CHANNELS
from tests.support.hpo.trackers.registry import LINEAGE, loaded
from tests.support.refusals import mentions, refuses
from tests.support.small_job import write_job
from tests.support.trainings import training, url
from trainers.errors import ConfigurationError


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
