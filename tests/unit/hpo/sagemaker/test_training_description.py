"""A training job and a trial in the form of SageMaker's DescribeTrainingJob response, against its service model."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from hpo.record.store import JobRow, ReportRow, TrialRow
from hpo.sagemaker import describe_training
from tests.support.described import SPEC

SHAPE = (
    botocore.session.get_session().get_service_model("sagemaker").operation_model("DescribeTrainingJob").output_shape
)
TRAINING = {"kind": "training", "objective_metric_name": "", "hyperparameter_ranges": {}, "max_jobs": 1}


def job(status: str = "Completed", *, reason: str = "", ended_at: float | None = 1090.0, **spec: Any) -> JobRow:
    described = {**SPEC, "inputs": {"train": {"files": ["s3://bank/train.csv"]}, "memory": {}}, **TRAINING, **spec}
    return JobRow(
        name="solo",
        status=status,
        reason=reason,
        created_at=1000.0,
        ended_at=ended_at,
        heartbeat=1090.0,
        spec=described,
    )


def trial(status: str = "Completed", **changes: Any) -> TrialRow:
    given = {"started_at": 1010.0, "ended_at": 1085.0, "resource": 9, "checkpoint": "s3://bank/solo/000009.ubj"}
    return TrialRow(**{"job": "solo", "trial_id": "solo-000", "number": 0, "status": status, **given, **changes})


def valid(response: dict[str, Any]) -> dict[str, Any]:
    """The response, which has what the service's shape asks for, and no other key."""
    report = ParamValidator().validate(response, SHAPE)
    assert not report.has_errors(), report.generate_report()
    for word, enum in (("TrainingJobStatus", None), ("SecondaryStatus", None)):
        assert response[word] in (enum or SHAPE.members[word].enum)
    for transition in response["SecondaryStatusTransitions"]:
        assert transition["Status"] in SHAPE.members["SecondaryStatus"].enum
    assert all(type(value) is str for value in response["HyperParameters"].values())
    return response


def steps(response: dict[str, Any]) -> list[str]:
    return [each["Status"] for each in response["SecondaryStatusTransitions"]]


def test_a_training_that_is_done() -> None:
    last = ReportRow(
        job="solo", trial_id="solo-000", step=9, metrics={"validation:auc": 0.9, "odd": float("nan")}, at=1080.0
    )
    found = valid(describe_training(job(), trial(), last=last, worker_seconds=160.0))
    assert (found["TrainingJobName"], found["TrainingJobStatus"]) == ("solo", "Completed")
    assert steps(found) == ["Starting", "Training", "Completed"]
    assert found["TrainingTimeInSeconds"] == 80
    assert found["BillableTimeInSeconds"] == 160 // found["ResourceConfig"]["InstanceCount"]
    assert [each["MetricName"] for each in found["FinalMetricDataList"]] == ["validation:auc"]
    assert found["ModelArtifacts"]["S3ModelArtifacts"] == "s3://bank/solo/000009.ubj"


@pytest.mark.parametrize(
    ("status", "reason", "secondary"),
    [
        ("Stopped", "max_runtime_in_seconds reached: 9 s of 9 s", "MaxRuntimeExceeded"),
        ("Stopped", "max_wait reached: 9 s of 9 s", "MaxWaitTimeExceeded"),
        ("Stopped", "max_cost reached", "Stopped"),
        ("Failed", "x" * 5000, "Failed"),
        ("Stopping", "", "Stopping"),
    ],
)
def test_how_it_ends(status: str, reason: str, secondary: str) -> None:
    found = valid(describe_training(job(status, reason=reason), trial("Stopped")))
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == (status, secondary)
    assert steps(found)[-1] == secondary
    assert len(found.get("FailureReason", "")) == (1024 if status == "Failed" else 0)


def test_before_it_trains_and_while_it_does() -> None:
    waiting = valid(describe_training(job("InProgress", ended_at=None), None))
    assert steps(waiting) == ["Starting"]
    assert waiting["FinalMetricDataList"] == []
    running = valid(describe_training(job("InProgress", ended_at=None), trial("Running", ended_at=None, checkpoint="")))
    assert steps(running) == ["Starting", "Training"]
    assert "TrainingEndTime" not in running


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("Completed", "Completed"),
        ("Stopped", "Stopped"),
        ("Failed", "Failed"),
        ("Diverged", "Failed"),
        ("Paused", "InProgress"),
    ],
)
def test_a_trial_of_a_tuning_job(status: str, shown: str) -> None:
    over = status != "Paused"
    changes = {"ended_at": 1085.0 if over else None, "failure_reason": "no memory" if status == "Failed" else ""}
    tuning = job(kind="tuning", objective_metric_name="validation:auc")
    found = valid(describe_training(tuning, trial(status, hyperparameters={"eta": 0.25, "on": True}, **changes)))
    assert (found["TrainingJobName"], found["TrainingJobStatus"]) == ("solo-000", shown)
    assert found["HyperParameters"]["eta"] == "0.25"
    assert found["HyperParameters"]["on"] == "true"
    assert ("FailureReason" in found) == (status == "Failed")
