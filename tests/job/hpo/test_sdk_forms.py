"""The forms in which scripts written for SageMaker's SDK call a tuner, on one small job in this process."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner, HyperparameterTuningJobAnalytics
from tests.support.bad_input import make, rows
from tests.support.refusals import refuses
from trainers import ConfigurationError

NAME = "small"


@pytest.fixture(scope="module")
def tuner(tmp_path_factory: pytest.TempPathFactory) -> HyperparameterTuner:
    folder = tmp_path_factory.mktemp("small")
    made: HyperparameterTuner = make(0, store=f"sqlite:///{folder}/warmband.db", storage_path=str(folder / "models"))
    made.fit({"train": rows(), "validation": rows()}, job_name=NAME)
    return made


@pytest.fixture(scope="module")
def store(tuner: HyperparameterTuner) -> str:
    url = tuner._store
    assert url is not None
    return url


@pytest.mark.parametrize("session", [(None,), (object(),)])
def test_attach_and_analytics_take_a_session(tuner: HyperparameterTuner, store: str, session: tuple[Any, ...]) -> None:
    for attached in (
        HyperparameterTuner.attach(NAME, *session, store=store),
        HyperparameterTuner.attach(NAME, sagemaker_session=session[0], store=store),
    ):
        assert attached.best_training_job() == tuner.best_training_job()
    for analytics in (
        HyperparameterTuningJobAnalytics(NAME, *session, store=store),
        HyperparameterTuningJobAnalytics(NAME, sagemaker_session=session[0], store=store),
    ):
        assert len(analytics.dataframe()) == 3


@pytest.mark.parametrize("field", ["job_details", "estimator_cls"])
def test_what_attach_has_no_use_for_is_named(tuner: HyperparameterTuner, store: str, field: str) -> None:
    options: dict[str, Any] = {field: "something"}
    with refuses(ConfigurationError, field=field):
        HyperparameterTuner.attach(NAME, store=store, **options)


def test_a_trial_is_asked_for_by_its_name_or_as_describe_gives_it(tuner: HyperparameterTuner) -> None:
    best = tuner.describe()["BestTrainingJob"]
    forms = (None, best["TrainingJobName"], best, {"TrainingJobName": best["TrainingJobName"]})
    configurations = [tuner.best_estimator(form).hyperparameters for form in forms]
    assert all(configuration == configurations[0] for configuration in configurations)


def test_what_describe_gives_becomes_json_as_that_of_the_service_does(tuner: HyperparameterTuner) -> None:
    described = tuner.describe()
    assert isinstance(described["CreationTime"], datetime)
    assert json.loads(json.dumps(described, default=str))["HyperParameterTuningJobName"] == NAME


@pytest.mark.parametrize("wrong", [{}, {"Name": "small-000"}, {"TrainingJobName": 1}, 1, ["small-000"]])
def test_what_names_no_trial_is_named(tuner: HyperparameterTuner, wrong: Any) -> None:
    with refuses(ConfigurationError, field="best_training_job", value=wrong, remedy="TrainingJobName"):
        tuner.best_estimator(wrong)


def test_a_job_may_run_in_silence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    quiet: HyperparameterTuner = make(0, console=False, store=f"sqlite:///{tmp_path}/quiet.db")
    quiet.fit({"train": rows(), "validation": rows()}, job_name="quiet")
    quiet.wait()
    assert capfd.readouterr().out == ""  # Of our own; what Ray Train says itself goes to the other one.
    assert quiet.describe()["HyperParameterTuningJobStatus"] == "Completed"
