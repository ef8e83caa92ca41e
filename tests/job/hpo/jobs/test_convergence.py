"""A job that ends once its search has converged: in its record, described, attached to, and taken up again."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo import ContinuousParameter, HyperparameterTuner, TuningJobCompletionCriteriaConfig
from hpo.record import Store, when
from tests.support.boosting import CHANNELS
from tests.support.refusals import mentions
from trainers import ScalingConfig, XGBoostTrainer


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('converged')}/record.db"


def make(store: str, folder: Path, **options: object) -> HyperparameterTuner:
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
        hyperparameters={"objective": "binary:logistic", "eval_metric": "logloss", "num_round": 2, "max_depth": 2},
    )
    settings = {"strategy": "Random", "random_seed": 3, "objective_type": "Minimize", **options}
    return HyperparameterTuner(
        trainer,
        "validation:logloss",
        {"eta": ContinuousParameter(0.01, 1)},
        store=store,
        storage_path=str(folder),
        console=False,
        completion_criteria_config=TuningJobCompletionCriteriaConfig(complete_on_convergence=True),
        **settings,  # type: ignore[arg-type]
    )


def test_it_ends_before_its_last_trial_and_says_so_and_a_job_that_is_taken_up_ends_alike(
    store: str, tmp_path: Path
) -> None:
    tuner = make(store, tmp_path / "whole", max_jobs=80)
    tuner.fit(CHANNELS, job_name="whole")
    described = tuner.describe()
    with Store(store) as record:
        trials = sorted((each for each in record.trials("whole") if each.number >= 0), key=lambda each: each.number)
    assert 30 <= len(trials) < 80
    assert described["HyperParameterTuningJobStatus"] == "Completed"
    mentions(described["StatusReason"], "converged", len(trials))
    details = described["TuningJobCompletionDetails"]
    assert details["ConvergenceDetectedTime"] == when(trials[-1].ended_at)
    config = described["HyperParameterTuningJobConfig"]
    assert config["TuningJobCompletionCriteria"] == {"ConvergenceDetected": {"CompleteOnConvergence": "Enabled"}}

    make(store, tmp_path / "brief", max_jobs=20).fit(CHANNELS, job_name="brief")
    again = HyperparameterTuner.attach("brief", store=store)
    assert "ConvergenceDetectedTime" not in again.describe()["TuningJobCompletionDetails"]
    again.resume(inputs=CHANNELS, max_jobs=80)
    assert again.describe()["StatusReason"] == described["StatusReason"]
    with Store(store) as record:
        taken_up = sorted((each for each in record.trials("brief") if each.number >= 0), key=lambda each: each.number)
    assert [each.objective for each in taken_up] == [each.objective for each in trials]
