"""Operations on tuning jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hpo.record import JobRow, Key, Store, TrialQuery, TrialRow, is_training, status_and_reason, training_job_name, when
from hpo.sagemaker import (
    counters,
    describe,
    describe_trial,
    overviews,
    printed_metric,
    training_job_statuses,
)
from hpo.serve.aws.creating import OBJECTIVE, create_tuning_job, request_of
from hpo.serve.aws.errors import ServiceError, invalid
from hpo.serve.aws.operations.caller import TRAINING, TUNING, Caller, create_once
from hpo.serve.aws.operations.paging import descending, found_page, page, within

_NAME, _STATUS = "HyperParameterTuningJobName", "HyperParameterTuningJobStatus"
_ASKED = ("TrainingJobDefinition", "TrainingJobDefinitions", "WarmStartConfig", "Autotune")
NO_ROLE = "arn:aws:iam::000000000000:role/none"
"""The role of a job that was given none; no job has any use for one."""

BY: dict[str, Any] = {"Name": "name", "Status": "status", "CreationTime": "begun"}
"""What trials are ordered by, by the request's word for it."""

LONGEST_REASON = 1024
"""Letters of a reason of failure in the API."""


def create(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateHyperParameterTuningJob."""
    name = request[_NAME]
    create_once(caller, name, "Hyperparameter tuning job", request, create_tuning_job)
    return {"HyperParameterTuningJobArn": caller.arn(TUNING, name)}


def described(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeHyperParameterTuningJob."""
    job = caller.tuning_job(request[_NAME])
    response = describe(job, caller.store.trials(job.name))
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
    _fill_definitions(response, job)
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
    # As there: those without a value have no place in an order by it.
    value = "best_objective" if job.spec["objective_value"] == "best" else "objective"

    def find(after: Key | None, most: int) -> list[tuple[Key, TrialRow]]:
        query = TrialQuery(
            most=most,
            job=job.name,
            by={"FinalObjectiveMetricValue": value, **BY}[by],
            descending=descending(request),
            after=after,
            words=training_job_statuses(),
            status=status,
        )
        return caller.store.find_trials(query)

    shown, more = found_page(caller, "ListTrainingJobsForHyperParameterTuningJob", request, find)
    summaries = [_summary(caller, job, describe_trial(job, trial)) for trial in shown]
    return {"TrainingJobSummaries": summaries, **more}


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
    name = training_job_name(line["TuningJobName"], line["TrainingJobName"])
    return {
        "CreationTime": when(job.created_at),  # Until it has begun.
        **line,
        **reason,
        "TrainingJobName": name,
        "TrainingJobArn": caller.arn(TRAINING, name),
    }


def with_resources(definition: Mapping[str, Any]) -> dict[str, Any]:
    """A definition with its `ResourceConfig`, also where it was given as that of a tuning job."""
    tuning = definition.get("HyperParameterTuningResourceConfig")
    if "ResourceConfig" in definition or not tuning:
        return dict(definition)
    names = ("InstanceType", "InstanceCount", "VolumeSizeInGB")
    return {
        **definition,
        "ResourceConfig": {"VolumeSizeInGB": 0, **{name: tuning[name] for name in names if name in tuning}},
    }


def _fill_definitions(response: dict[str, Any], job: JobRow) -> None:
    """Adds what the service adds of its own, and the SDK counts on where it attaches: resources, objective, metrics."""
    for member in ("TrainingJobDefinition", "TrainingJobDefinitions"):
        if member in response:
            several = response[member] if isinstance(response[member], list) else [response[member]]
            named = [_with_objective(each, job) for each in several]
            response[member] = named if isinstance(response[member], list) else named[0]


def _with_objective(definition: Mapping[str, Any], job: JobRow) -> dict[str, Any]:
    metric = definition.get("TuningObjective", {}).get("MetricName") or job.spec["objective_metric_name"]
    static = definition.get("StaticHyperParameters", {})
    algorithm = {"MetricDefinitions": [printed_metric(metric)], **definition.get("AlgorithmSpecification", {})}
    return {
        **with_resources(definition),
        "AlgorithmSpecification": algorithm,
        "StaticHyperParameters": {**static, OBJECTIVE: metric},
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
