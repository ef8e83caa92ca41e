"""Operations on tuning jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hpo.record import JobRow, Store, TrialRow, is_training, objective, status_and_reason, when
from hpo.sagemaker import counters, describe, describe_trial, overviews, tuned_trials
from hpo.serve.aws.creating import create_tuning_job, request_of
from hpo.serve.aws.errors import ServiceError, invalid
from hpo.serve.aws.operations.caller import TRAINING, TUNING, Caller, check_new
from hpo.serve.aws.operations.paging import Key, page, within

_NAME, _STATUS = "HyperParameterTuningJobName", "HyperParameterTuningJobStatus"
_ASKED = ("TrainingJobDefinition", "TrainingJobDefinitions", "WarmStartConfig", "Autotune")
NO_ROLE = "arn:aws:iam::000000000000:role/none"
"""The role of a job that was given none; no job has any use for one."""

LONGEST_REASON = 1024
"""Letters of a reason of failure in the API."""


def create(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateHyperParameterTuningJob."""
    name = request[_NAME]
    check_new(caller, name, "Hyperparameter tuning job")
    create_tuning_job(caller.store_url, request, caller.tables)
    return {"HyperParameterTuningJobArn": caller.arn(TUNING, name)}


def described(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeHyperParameterTuningJob."""
    job = caller.tuning_job(request[_NAME])
    response = describe(job, tuned_trials(caller.store, job.name))
    asked = request_of(job)
    if asked is None:
        _complete(response, job)
    else:
        limits = response["HyperParameterTuningJobConfig"]["ResourceLimits"]  # They may have been raised since.
        wanted = asked["HyperParameterTuningJobConfig"]
        config = {**wanted, "ResourceLimits": {**wanted["ResourceLimits"], **limits}}
        for member in _ASKED:
            response.pop(member, None)
        kept = {member: asked[member] for member in _ASKED if member in asked}
        response = {**response, **kept, "HyperParameterTuningJobConfig": config}
    for best in ("BestTrainingJob", "OverallBestTrainingJob"):
        if best in response:
            response[best] = _summary(caller, job, response[best])
    if reason := response.get("FailureReason"):
        response["FailureReason"] = reason[:LONGEST_REASON]
    return {**response, "HyperParameterTuningJobArn": caller.arn(TUNING, job.name)}


def listed(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListHyperParameterTuningJobs."""
    jobs = [(job, _line(job)) for job in caller.store.jobs() if not is_training(job)]
    passing = [(job, line) for job, line in jobs if within(request, line, job.name, _STATUS)]
    by = request.get("SortBy", "Name")

    def key(entry: tuple[JobRow, dict[str, Any]]) -> Key:
        job, line = entry
        return {"Name": job.name, "Status": line[_STATUS], "CreationTime": job.created_at}[by], job.name

    shown, more = page(caller, "ListHyperParameterTuningJobs", request, passing, key)
    totals = {each.job.name: each.totals for each in overviews(caller.store, [job for job, _ in shown])}
    summaries = [
        {
            **line,
            _NAME: job.name,
            "HyperParameterTuningJobArn": caller.arn(TUNING, job.name),
            **counters(totals[job.name].trials),
        }
        for job, line in shown
    ]
    return {"HyperParameterTuningJobSummaries": summaries, **more}


def trainings(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListTrainingJobsForHyperParameterTuningJob."""
    job = caller.tuning_job(request[_NAME])
    by, status = request.get("SortBy", "Name"), request.get("StatusEquals")
    entries = [(trial, describe_trial(job, trial)) for trial in tuned_trials(caller.store, job.name)]
    passing = [
        (trial, line)
        for trial, line in entries
        if status in (None, line["TrainingJobStatus"])
        # As there: those without a value have no place in an order by it.
        and (by != "FinalObjectiveMetricValue" or objective(job, trial) is not None)
    ]

    def key(entry: tuple[TrialRow, dict[str, Any]]) -> Key:
        trial, line = entry
        if by == "FinalObjectiveMetricValue":
            return objective(job, trial) or 0.0, trial.trial_id
        begun = job.created_at if trial.started_at is None else trial.started_at
        values: dict[str, Any] = {"Name": trial.trial_id, "Status": line["TrainingJobStatus"], "CreationTime": begun}
        return values[by], trial.trial_id

    shown, more = page(caller, "ListTrainingJobsForHyperParameterTuningJob", request, passing, key)
    return {"TrainingJobSummaries": [_summary(caller, job, line) for _, line in shown], **more}


def stop(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """StopHyperParameterTuningJob."""
    stop_job(caller.store, caller.tuning_job(request[_NAME]), "hyperparameter tuning job")
    return {}


def delete(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteHyperParameterTuningJob."""
    delete_job(caller.store, caller.tuning_job(request[_NAME]))
    return {}


def stop_job(store: Store, job: JobRow, what: str) -> None:
    """Asks a job to stop; what it has found is kept.

    Raises:
        ServiceError: it is over.
    """
    from hpo.jobs import end_abandoned

    if not (end_abandoned(store, job.name) or store.request_stop(job.name)):
        status = status_and_reason(store.job(job.name))[0]
        raise invalid(f"The request was rejected because the {what} is in status {status}.")


def delete_job(store: Store, job: JobRow) -> None:
    """Deletes a job that is over; its files stay, as the service leaves what is in S3.

    Raises:
        ServiceError: it is not over.
    """
    from hpo.jobs import check_over
    from trainers.errors import ConfigurationError

    try:
        check_over(job)
    except ConfigurationError as error:
        raise ServiceError("ResourceInUse", str(error)) from error
    store.delete_job(job.name)


def _line(job: JobRow) -> dict[str, Any]:
    """What a list says of a job, without its trials."""
    ended = {} if job.ended_at is None else {"HyperParameterTuningEndTime": when(job.ended_at)}
    most, parallel = job.spec["max_jobs"], job.spec["max_parallel_jobs"]
    return {
        _STATUS: status_and_reason(job)[0],
        "Strategy": job.spec["strategy"],
        "CreationTime": when(job.created_at),
        "LastModifiedTime": when(job.heard),
        "ResourceLimits": {"MaxNumberOfTrainingJobs": most, "MaxParallelTrainingJobs": parallel},
        **ended,
    }


def _summary(caller: Caller, job: JobRow, line: Mapping[str, Any]) -> dict[str, Any]:
    """A trial as the model has it."""
    reason = {"FailureReason": line["FailureReason"][:LONGEST_REASON]} if "FailureReason" in line else {}
    return {
        "CreationTime": when(job.created_at),  # Until it has begun.
        **line,
        **reason,
        "TrainingJobArn": caller.arn(TRAINING, line["TrainingJobName"]),
    }


def _complete(response: dict[str, Any], job: JobRow) -> None:
    """Adds what the model requires to the response for a job that came from elsewhere, such as a job file."""
    for definition in (response.get("TrainingJobDefinition"), *response.get("TrainingJobDefinitions", ())):
        if definition is not None:
            definition["StaticHyperParameters"] = texts(definition["StaticHyperParameters"])
            definition["AlgorithmSpecification"] = {"TrainingInputMode": "File"}
            definition["OutputDataConfig"] = {"S3OutputPath": str(job.spec.get("storage_path") or "")}
            definition["StoppingCondition"] = {}
            definition["RoleArn"] = NO_ROLE


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Hyperparameters as the API has them: texts, and JSON of what is none."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in values.items()
        if value is not None
    }
