"""Operations on training jobs: single trainings, and the trials of tuning jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hpo.record import UNTUNED, JobRow, Key, TrialQuery, TrialRow, is_training
from hpo.sagemaker import describe_training, read_training, stop_trial, training_job_statuses, tuned_trials
from hpo.serve.aws.creating import OBJECTIVE, PROGRAM, create_training_job, request_of
from hpo.serve.aws.errors import invalid
from hpo.serve.aws.operations.caller import TRAINING, TUNING, Caller, create_once
from hpo.serve.aws.operations.paging import behind, descending, found_page, span, within
from hpo.serve.aws.operations.tuning_jobs import BY, delete_job, stop_job, texts, with_resources
from trainers.errors import ConfigurationError
from trainers.parts import ESTIMATOR, of_one

_NAME, _STATUS = "TrainingJobName", "TrainingJobStatus"


def create(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateTrainingJob."""
    name = request[_NAME]
    create_once(caller, name, "Training job", request, create_training_job)
    return {"TrainingJobArn": caller.arn(TRAINING, name)}


def described(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeTrainingJob."""
    job, trial = caller.training_job(request[_NAME])
    response = read_training(caller.store, job.name, trial.trial_id if trial else None)
    asked = request_of(job)
    response["ResourceConfig"] = {**response["ResourceConfig"], "VolumeSizeInGB": 0}
    if asked is not None:
        part = asked if trial is None else _definition(asked, trial)
        measured = response["AlgorithmSpecification"]["MetricDefinitions"]
        # The answer repeats the members of the request that its shape has.
        response |= {**part, _NAME: response[_NAME], "HyperParameters": _sent(part, job, trial)}
        # The SDK's analytics ask for the metrics that stand here, also where an algorithm has its own.
        response["AlgorithmSpecification"] = {"MetricDefinitions": measured, **response["AlgorithmSpecification"]}
        response["OutputDataConfig"] = {"KmsKeyId": "", **response["OutputDataConfig"]}  # `Estimator.attach` reads it.
    if trial is not None:
        response["TuningJobArn"] = caller.arn(TUNING, job.name)
    return {**response, "TrainingJobArn": caller.arn(TRAINING, request[_NAME])}


def listed(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListTrainingJobs."""
    if "WarmPoolStatusEquals" in request or "TrainingPlanArnEquals" in request:
        raise invalid("WarmPoolStatusEquals and TrainingPlanArnEquals are not here; leave them out")
    by = request.get("SortBy", "CreationTime")
    alone = list(_trainings(caller, request, by))

    def find(after: Key | None, most: int) -> list[tuple[Key, JobRow | TrialRow]]:
        query = TrialQuery(
            most=most,
            by=BY[by],
            descending=descending(request),
            after=after,
            words={**training_job_statuses(), "Diverged": "Failed"},
            status=request.get("StatusEquals"),
            contains=request.get("NameContains", ""),
            begun=span(request, "CreationTime"),
            modified=span(request, "LastModifiedTime"),
        )
        both: list[tuple[Key, JobRow | TrialRow]] = [*alone, *caller.store.find_trials(query)]
        return behind(both, request, after)[:most]

    shown, more = found_page(caller, "ListTrainingJobs", request, find)
    jobs = {name: caller.store.job(name) for name in {row.job for row in shown if isinstance(row, TrialRow)}}
    lines = [
        _training_line(caller, row) if isinstance(row, JobRow) else describe_training(jobs[row.job], row)
        for row in shown
    ]
    return {
        "TrainingJobSummaries": [{**line, "TrainingJobArn": caller.arn(TRAINING, line[_NAME])} for line in lines],
        **more,
    }


def stop(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """StopTrainingJob."""
    job, trial = caller.training_job(request[_NAME])
    if trial is None:
        stop_job(caller.store, job, "training job")
        return {}
    try:
        stop_trial(caller.store, job.name, trial.trial_id)
    except ConfigurationError as error:
        raise invalid(f"The request was rejected because the training job cannot be stopped: {error}") from error
    return {}


def delete(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteTrainingJob."""
    job, trial = caller.training_job(request[_NAME])
    if trial is not None:
        raise invalid(
            f"training job {trial.trial_id!r} is of tuning job {job.name!r}, and goes with it; delete that one"
        )
    delete_job(caller.store, job)
    return {}


def _trainings(caller: Caller, request: Mapping[str, Any], by: str) -> Iterator[tuple[Key, JobRow]]:
    """The single trainings that pass a request's filters, with their keys."""
    whole = "LastModifiedTimeAfter" in request or "LastModifiedTimeBefore" in request
    for job in filter(is_training, caller.store.jobs()):
        line = _training_line(caller, job) if whole else describe_training(job, None)
        if within(request, line, job.name, _STATUS):
            keys: dict[str, Any] = {"Name": job.name, "Status": line[_STATUS], "CreationTime": job.created_at}
            yield (keys[by], job.name), job


def _training_line(caller: Caller, job: JobRow) -> dict[str, Any]:
    return describe_training(job, next(iter(tuned_trials(caller.store, job.name)), None))


def _sent(part: Mapping[str, Any], job: JobRow, trial: TrialRow | None) -> dict[str, str]:
    """The hyperparameters of a training as its client sends them, so that the SDK can make an estimator of them.

    Args:
        part: of the request, the definition of the training.
        job: the training job, or the tuning job of the trial.
        trial: the trial; None for a training job.
    """
    if trial is None:
        return dict(part.get("HyperParameters", {}))
    static = part.get("StaticHyperParameters", {})
    objective = part.get("TuningObjective", {}).get("MetricName") or job.spec["objective_metric_name"]
    if trial.trial_id == UNTUNED:
        return {**static, OBJECTIVE: objective}
    several = ESTIMATOR in trial.hyperparameters
    tuned = of_one(part["DefinitionName"], trial.hyperparameters) if several else trial.hyperparameters
    # The SDK's estimators of programs read each value as JSON.
    written = {name: json.dumps(value) for name, value in tuned.items()} if PROGRAM in static else texts(tuned)
    return {**static, **written, OBJECTIVE: objective}


def _definition(asked: Mapping[str, Any], trial: TrialRow) -> dict[str, Any]:
    """Of a tuning job's request the definition that a trial is of."""
    several = {each.get("DefinitionName"): each for each in asked.get("TrainingJobDefinitions", ())}
    found = several.get(trial.hyperparameters.get(ESTIMATOR)) if several else asked["TrainingJobDefinition"]
    return with_resources(found or {})
