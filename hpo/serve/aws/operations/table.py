"""Table of the operations that are served, by service and name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hpo.serve.aws.operations import logs, metrics, tags, training_jobs, tuning_jobs
from hpo.serve.aws.operations.caller import Caller


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Args:
        call: answers a request.
        acts: whether it changes anything.
        creates: whether it creates a job, which may take minutes.
    """

    call: Callable[[Caller, dict[str, Any]], dict[str, Any]]
    acts: bool = False
    creates: bool = False


def _identity(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    user = f"arn:aws:iam::{caller.account}:user/{caller.key.name}"
    return {"UserId": caller.key.id, "Account": caller.account, "Arn": user}


OPERATIONS = {
    ("sagemaker", "CreateHyperParameterTuningJob"): Operation(tuning_jobs.create, acts=True, creates=True),
    ("sagemaker", "DescribeHyperParameterTuningJob"): Operation(tuning_jobs.described),
    ("sagemaker", "ListHyperParameterTuningJobs"): Operation(tuning_jobs.listed),
    ("sagemaker", "ListTrainingJobsForHyperParameterTuningJob"): Operation(tuning_jobs.trainings),
    ("sagemaker", "StopHyperParameterTuningJob"): Operation(tuning_jobs.stop, acts=True),
    ("sagemaker", "DeleteHyperParameterTuningJob"): Operation(tuning_jobs.delete, acts=True),
    ("sagemaker", "CreateTrainingJob"): Operation(training_jobs.create, acts=True, creates=True),
    ("sagemaker", "DescribeTrainingJob"): Operation(training_jobs.described),
    ("sagemaker", "ListTrainingJobs"): Operation(training_jobs.listed),
    ("sagemaker", "StopTrainingJob"): Operation(training_jobs.stop, acts=True),
    ("sagemaker", "DeleteTrainingJob"): Operation(training_jobs.delete, acts=True),
    ("sagemaker", "AddTags"): Operation(tags.add, acts=True),
    ("sagemaker", "ListTags"): Operation(tags.listed),
    ("sagemaker", "DeleteTags"): Operation(tags.delete, acts=True),
    ("cloudwatch", "GetMetricStatistics"): Operation(metrics.statistics),
    ("cloudwatch", "GetMetricData"): Operation(metrics.data),
    ("logs", "DescribeLogStreams"): Operation(logs.streams),
    ("logs", "GetLogEvents"): Operation(logs.events),
    ("sts", "GetCallerIdentity"): Operation(_identity),
}
"""What is served, by service and operation."""
