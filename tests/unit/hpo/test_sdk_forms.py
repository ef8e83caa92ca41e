"""The forms in which scripts written for SageMaker's SDK call a tuner, on one small job in this process."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from hpo import HyperparameterTuner, HyperparameterTuningJobAnalytics
from tests.support.bad_input import make
from tests.support.refusals import missing_names, refuses, refuses_each
from trainers import ConfigurationError


def test_an_argument_that_a_tuner_does_not_have_is_named() -> None:
    refuses_each(
        [
            (
                lambda: make(0, search_alg=object()),
                ("search_alg", "HyperparameterTuner", "searcher", "scheduler"),
            ),
            (
                lambda: make(0, tune_config=object()),
                ("tune_config", "num_samples", "max_jobs", "max_concurrent_trials", "max_parallel_jobs"),
            ),
            (lambda: make(0, max_job=3), ("HyperparameterTuner", "max_job", "max_jobs")),
        ],
        ConfigurationError,
    )
    with refuses(ConfigurationError, field=("HyperparameterTuner", "role")) as raised:
        make(0, role="me")
    known = list(make(0).settings.arguments())
    assert missing_names(str(raised.value), *known) == known, "no argument is near enough to be suggested"


def test_the_tuners_first_parameters_are_the_sdks() -> None:
    """As version 2 of the SDK has them, in its order."""
    parameters = list(inspect.signature(HyperparameterTuner.attach).parameters)
    assert parameters[:4] == ["tuning_job_name", "sagemaker_session", "job_details", "estimator_cls"]
    parameters = list(inspect.signature(HyperparameterTuningJobAnalytics).parameters)
    assert parameters[:2] == ["hyperparameter_tuning_job_name", "sagemaker_session"]


@pytest.mark.parametrize("console", [True, 0, "stdout"])
def test_what_is_no_console_is_named(console: Any) -> None:
    remedies = ("rich.console.Console", "None", "False")
    with refuses(ConfigurationError, field="console", value=console, remedy=remedies):
        make(0, console=console)
