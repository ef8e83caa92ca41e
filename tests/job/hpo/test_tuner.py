"""Whole tuning jobs on a real cluster, through the public Python API."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperparameterTuner,
    IntegerParameter,
)
from hpo.strategies.hyperband import lay_out
from tests.support.boosting import CHANNELS, make
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, WarmbandError


def test_random_runs_each_trial_for_its_own_rounds() -> None:
    tuner = make(workers=0, strategy="Random", strategy_config=None, max_jobs=3)
    tuner.ranges = {"num_round": IntegerParameter(3, 9), "eta": ContinuousParameter(0.1, 1)}
    tuner.fit(CHANNELS)
    frame = tuner.analytics().dataframe()
    assert list(frame["Resource"]) == list(frame["num_round"])
    assert set(frame["TrainingJobStatus"]) == {"Completed"}


def test_a_job_whose_every_trial_fails_is_failed_with_the_trainers_words() -> None:
    tuner = make(workers=0, max_jobs=3)
    tuner.ranges = {"updater": CategoricalParameter(["no_updater"])}
    with refuses(WarmbandError, field="updater", value="no_updater", remedy="XGBoostError") as raised:
        tuner.fit(CHANNELS)
    name = tuner.latest_tuning_job.name
    mentions(str(raised.value), name, f"{name}-000")
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Failed"
    assert tuner.best_training_job() == "untuned"  # It has trained, and has a model.
    assert tuner.best_estimator().model().num_boosted_rounds() > 0


class Eager(HyperparameterTuner):
    """Sets settings before and behind the constructor."""

    priority = 7
    TUNING_JOB_NAME_MAX_LENGTH = 8

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.max_jobs = 2
        super().__init__(*arguments, **options)
        self.num_to_keep = 1


def test_a_subclass_sets_settings_as_it_did(home: Path) -> None:
    made = make(workers=0, max_jobs=3)
    tuner = Eager(**{**made.settings.arguments(), "priority": 3})
    assert (tuner.max_jobs, tuner.priority, tuner.settings.options["num_to_keep"]) == (3, 3, 1)
    with refuses(ConfigurationError, field="job_name", value="too-long-a-name", remedy="8"):
        tuner.fit(CHANNELS, job_name="too-long-a-name")
    tuner.fit(CHANNELS, job_name="short")
    assert Eager.attach("short").num_to_keep == 1


def test_a_fit_behind_an_attach_has_its_own_brackets(home: Path) -> None:
    make(workers=0, max_jobs=3).fit(CHANNELS, job_name="first")
    tuner = HyperparameterTuner.attach("first")
    grown = lay_out(5, 1, 30)
    tuner.settings = replace(tuner.settings, planned=grown)
    assert tuner.plan() == grown
    tuner.fit(CHANNELS, job_name="second")
    assert tuner.plan() == lay_out(3, 1, 30)
