"""A job in the form of SageMaker's Describe response, from a record filled by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hpo.record.job_view import best_trial, status_and_reason
from hpo.record.store import JobRow, Store, TrialRow
from hpo.sagemaker.description import describe, describe_trial
from tests.support.described import SPEC, TRIALS, trial
from tests.support.refusals import mentions
from tests.support.rows import silence

# The names of the API model, and one of ours.
REQUIRED = {
    "HyperParameterTuningJobName",
    "HyperParameterTuningJobConfig",
    "HyperParameterTuningJobStatus",
    "CreationTime",
    "TrainingJobStatusCounters",
    "ObjectiveStatusCounters",
}
ALLOWED = REQUIRED | {
    "HyperParameterTuningEndTime",
    "LastModifiedTime",
    "TrainingJobDefinition",
    "BestTrainingJob",
    "OverallBestTrainingJob",
    "FailureReason",
    "ConsumedResources",
    "TuningJobCompletionDetails",
    "StatusReason",  # Ours: why a job that did not fail ended before its plan did.
    "Summary",
}
JOB_KEYS = {
    "TrainingJobDefinitionName",
    "TrainingJobName",
    "TrainingJobArn",
    "TuningJobName",
    "CreationTime",
    "TrainingStartTime",
    "TrainingEndTime",
    "TrainingJobStatus",
    "TunedHyperParameters",
    "FailureReason",
    "FinalHyperParameterTuningJobObjectiveMetric",
    "ObjectiveStatus",
}


def job(**changes: Any) -> JobRow:
    spec = {**SPEC, **changes.pop("spec", {})}
    return JobRow(**{"name": "bank", "created_at": 1000.0, "heartbeat": 1090.0, "spec": spec} | changes)


def ended(**changes: Any) -> JobRow:
    return job(**{"status": "Completed", "ended_at": 1090.0} | changes)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


def test_it_has_the_keys_of_the_api_model() -> None:
    response = describe(ended(), TRIALS)
    assert response.keys() >= REQUIRED
    assert response.keys() <= ALLOWED
    config = response["HyperParameterTuningJobConfig"]
    assert config.keys() == {
        "Strategy",
        "StrategyConfig",
        "HyperParameterTuningJobObjective",
        "ResourceLimits",
        "ParameterRanges",
        "TrainingJobEarlyStoppingType",
        "RandomSeed",
    }
    assert config["Strategy"] == "Hyperband"
    assert config["StrategyConfig"] == SPEC["strategy_request"]
    assert config["HyperParameterTuningJobObjective"] == {"Type": "Maximize", "MetricName": "validation:auc"}
    assert config["ResourceLimits"] == {"MaxNumberOfTrainingJobs": 30, "MaxParallelTrainingJobs": 4}
    assert config["ParameterRanges"] == SPEC["parameter_ranges"]
    assert response["TrainingJobDefinition"] == {"StaticHyperParameters": {"eval_metric": "auc"}}


def test_what_was_not_given_is_left_out() -> None:
    response = describe(job(spec={"strategy": "Random", "strategy_request": None}), [])
    assert "StrategyConfig" not in response["HyperParameterTuningJobConfig"]
    assert {"BestTrainingJob", "FailureReason", "HyperParameterTuningEndTime"}.isdisjoint(response)
    with_limit = describe(ended(spec={"max_runtime_in_seconds": 600}), [])
    assert with_limit["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxRuntimeInSeconds"] == 600


def test_times_are_in_utc() -> None:
    response = describe(ended(), TRIALS)
    assert response["CreationTime"] == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)
    assert response["LastModifiedTime"] == response["HyperParameterTuningEndTime"]
    assert response["ConsumedResources"] == {"RuntimeInSeconds": 90}
    best = response["BestTrainingJob"]
    assert best["TrainingEndTime"].timestamp() - best["TrainingStartTime"].timestamp() == 10


def test_trials_are_counted_by_status_and_by_objective() -> None:
    response = describe(ended(), TRIALS)
    assert response["TrainingJobStatusCounters"] == {
        "Completed": 1,
        "InProgress": 3,
        "Stopped": 3,
        "RetryableError": 0,
        "NonRetryableError": 2,
    }
    assert response["ObjectiveStatusCounters"] == {"Succeeded": 3, "Pending": 3, "Failed": 3}
    assert sum(response["ObjectiveStatusCounters"].values()) == len(TRIALS)


@pytest.mark.parametrize("value", ["last", "best"])
def test_the_counters_are_of_the_objective_that_each_trial_shows(value: str) -> None:
    row = ended(spec={"objective_value": value})
    shown = [describe_trial(row, each)["ObjectiveStatus"] for each in TRIALS]
    counted = describe(row, TRIALS)["ObjectiveStatusCounters"]
    assert counted == {name: shown.count(name) for name in ("Succeeded", "Pending", "Failed")}


@pytest.mark.parametrize(
    ("kind", "value", "best", "metric"),
    [
        ("Maximize", "last", "bank-001", 0.75),
        ("Maximize", "best", "bank-000", 0.78),
        ("Minimize", "last", "bank-000", 0.70),
        ("Minimize", "best", "bank-003", 0.60),
    ],
)
def test_the_best_is_by_type_and_value_of_the_objective(kind: str, value: str, best: str, metric: float) -> None:
    """Trial 2 failed, and what it had reported does not count."""
    response = describe(ended(spec={"objective_type": kind, "objective_value": value}), TRIALS)
    assert response["BestTrainingJob"]["TrainingJobName"] == best
    assert response["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"] == {
        "Type": kind,
        "MetricName": "validation:auc",
        "Value": metric,
    }


def test_of_equals_the_first_is_best() -> None:
    assert best_trial(ended(), [trial(2), trial(1), trial(3)]).trial_id == "bank-001"


@pytest.mark.parametrize("trials", [[], TRIALS[2:4], TRIALS[6:]])
def test_without_an_objective_there_is_no_best(trials: list[TrialRow]) -> None:
    assert best_trial(ended(), trials) is None
    assert "BestTrainingJob" not in describe(ended(), trials)


def test_a_trial_has_the_keys_of_the_api_model() -> None:
    described = describe_trial(ended(), TRIALS[0])
    assert described.keys() <= JOB_KEYS
    assert described["TrainingJobName"] == "bank-000"
    assert described["TuningJobName"] == "bank"
    assert described["TrainingJobStatus"] == "Completed"
    assert described["ObjectiveStatus"] == "Succeeded"
    assert described["TunedHyperParameters"] == {"eta": "0.1", "booster": "dart"}
    assert "FailureReason" not in described


@pytest.mark.parametrize("number", [4, 5, 6])
def test_a_trial_that_goes_on_is_in_progress(number: int) -> None:
    described = describe_trial(job(), TRIALS[number])
    assert described["TrainingJobStatus"] == "InProgress"
    assert described["ObjectiveStatus"] == "Pending"
    assert "TrainingEndTime" not in described
    assert ("TrainingStartTime" in described) == (number != 6)


def test_a_trial_without_an_objective_shows_none() -> None:
    described = describe_trial(ended(), TRIALS[3])
    assert described["ObjectiveStatus"] == "Failed"
    assert "FinalHyperParameterTuningJobObjectiveMetric" not in described


def test_a_trial_that_failed_says_why() -> None:
    described = describe_trial(ended(), TRIALS[7])
    assert described["TrainingJobStatus"] == "Failed"
    assert described["FailureReason"] == "lost its workers"


# ---- how the job stands


@pytest.mark.parametrize("status", ["InProgress", "Stopping"])
def test_a_job_whose_driver_is_gone_has_failed(store: Store, status: str) -> None:
    store.create_job(job(status=status))
    silence(store, 300.0)
    response = describe(store.job("bank"), [])
    assert response["HyperParameterTuningJobStatus"] == "Failed"
    mentions(response["FailureReason"], "300 s", status)


@pytest.mark.parametrize("status", ["InProgress", "Stopping"])
def test_a_job_whose_driver_is_heard_of_goes_on(store: Store, status: str) -> None:
    store.create_job(job(status=status))
    silence(store, 10.0)
    assert status_and_reason(store.job("bank")) == (status, "")


@pytest.mark.parametrize("status", ["Completed", "Stopped", "Failed"])
def test_a_job_that_has_ended_stays_what_it_was(store: Store, status: str) -> None:
    store.create_job(ended(status=status, reason="why"))
    response = describe(store.job("bank"), [])
    assert response["HyperParameterTuningJobStatus"] == status
    assert response["StatusReason"] == "why"
    assert ("FailureReason" in response) == (status != "Completed")


def test_what_went_through_the_store_is_described_the_same(store: Store) -> None:
    store.create_job(ended(summary={"best": {"trial": "bank-001"}}))
    with store.writer("bank") as writer:
        for each in TRIALS:
            writer.trial(each)
    response = describe(store.job("bank"), store.trials("bank"))
    assert response["Summary"]["best"] == {"trial": "bank-001"}
    assert response["Summary"]["driver"]["pid"] == os.getpid()
    direct = describe(ended(), TRIALS)
    for name in ("BestTrainingJob", "TrainingJobStatusCounters", "HyperParameterTuningJobConfig"):
        assert response[name] == direct[name]


def test_a_trial_that_failed_says_where_its_traceback_and_its_output_are() -> None:
    row = TrialRow(
        job="bank",
        trial_id="bank-000",
        number=0,
        status="Failed",
        failure_reason="boom",
        traceback="Traceback: boom",
        logs="10.0.0.1:/tmp/ray/worker.err",
    )
    described = describe_trial(job(), row)
    assert described["FailureReason"] == "boom"
    assert described["Traceback"] == "Traceback: boom"
    assert described["Logs"] == "10.0.0.1:/tmp/ray/worker.err"
    assert {"Traceback", "Logs"}.isdisjoint(describe_trial(job(), TRIALS[0]))


def test_hyperparameters_whose_ranges_autotune_chose_are_named_with_a_value_of_each() -> None:
    chosen = [{"name": name, "chosen": "", "why": ""} for name in ("eta", "booster", "max_jobs")]
    static = {**SPEC["estimator"], "hyperparameters": {"booster": "dart"}}
    config = describe(job(spec={"autotune": chosen, "estimator": static}), [])["HyperParameterTuningJobConfig"]
    ranges = config["ParameterRanges"]
    assert ranges["AutoParameters"] == [
        {"Name": "eta", "ValueHint": "0.5"},
        {"Name": "booster", "ValueHint": "dart"},
    ]
    assert {name: ranges[name] for name in SPEC["parameter_ranges"]} == SPEC["parameter_ranges"]
    by_name = {entry["Name"]: entry for kind in ranges.values() for entry in kind}
    assert by_name["eta"]["MaxValue"] == "1"
    assert "AutoParameters" not in describe(job(spec={"autotune": []}), [])["HyperParameterTuningJobConfig"]


def test_a_searcher_and_a_scheduler_are_told_with_their_arguments() -> None:
    parts = {"searcher": {"type": "ray.tune.search.optuna:OptunaSearch", "arguments": {"seed": 1}}}
    config = describe(job(spec={"strategy": "RayTune", "strategy_config": parts}), [])["HyperParameterTuningJobConfig"]
    assert config["Searcher"] == {"Type": "ray.tune.search.optuna:OptunaSearch", "Arguments": {"seed": 1}}
    assert "Scheduler" not in config
