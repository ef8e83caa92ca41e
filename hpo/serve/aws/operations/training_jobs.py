"""Operations on training jobs: single trainings, and the trials of tuning jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpo.record import JobRow, TrialRow, is_training
from hpo.sagemaker import describe_training, read_training, stop_trial, tuned_trials
from hpo.serve.aws.creating import create_training_job, request_of
from hpo.serve.aws.errors import invalid
from hpo.serve.aws.operations.caller import TRAINING, TUNING, Caller, check_new
from hpo.serve.aws.operations.paging import Key, page, within
from hpo.serve.aws.operations.tuning_jobs import delete_job, stop_job
from trainers.errors import ConfigurationError
from trainers.parts import ESTIMATOR

_NAME, _STATUS = "TrainingJobName", "TrainingJobStatus"
_ASKED = (
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "VpcConfig",
    "StoppingCondition",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "CheckpointConfig",
    "Environment",
    "RetryStrategy",
)
"""Members of the response that say what was asked for."""


def create(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateTrainingJob."""
    name = request[_NAME]
    check_new(caller, name, "Training job")
    create_training_job(caller.store_url, request, caller.tables)
    return {"TrainingJobArn": caller.arn(TRAINING, name)}


def described(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeTrainingJob."""
    job, trial = caller.training_job(request[_NAME])
    response = read_training(caller.store, job.name, trial)
    asked = request_of(job)
    response["ResourceConfig"] = {**response["ResourceConfig"], "VolumeSizeInGB": 0}
    if asked is not None:
        part = asked if trial is None else _definition(asked, job, _trial(caller, job, trial))
        response |= {member: part[member] for member in _ASKED if member in part}
    if trial is not None:
        response["TuningJobArn"] = caller.arn(TUNING, job.name)
    return {**response, "TrainingJobArn": caller.arn(TRAINING, request[_NAME])}


def listed(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListTrainingJobs."""
    if "WarmPoolStatusEquals" in request or "TrainingPlanArnEquals" in request:
        raise invalid("WarmPoolStatusEquals and TrainingPlanArnEquals are not here; leave them out")
    passing = [line for line in _lines(caller) if within(request, line, line[_NAME], _STATUS)]
    by = request.get("SortBy", "CreationTime")

    def key(line: Mapping[str, Any]) -> Key:
        return line[by].timestamp() if by == "CreationTime" else line[f"TrainingJob{by}"], line[_NAME]

    shown, more = page(caller, "ListTrainingJobs", request, passing, key)
    return {
        "TrainingJobSummaries": [{**line, "TrainingJobArn": caller.arn(TRAINING, line[_NAME])} for line in shown],
        **more,
    }


def stop(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """StopTrainingJob."""
    job, trial = caller.training_job(request[_NAME])
    if trial is None:
        stop_job(caller.store, job, "training job")
        return {}
    try:
        stop_trial(caller.store, job.name, trial)
    except ConfigurationError as error:
        raise invalid(f"The request was rejected because the training job cannot be stopped: {error}") from error
    return {}


def delete(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteTrainingJob."""
    job, trial = caller.training_job(request[_NAME])
    if trial is not None:
        raise invalid(f"training job {trial!r} is of tuning job {job.name!r}, and goes with it; delete that one")
    delete_job(caller.store, job)
    return {}


def _lines(caller: Caller) -> Iterator[dict[str, Any]]:
    for job in caller.store.jobs():
        trials = tuned_trials(caller.store, job.name)
        if is_training(job):
            yield describe_training(job, trials[0] if trials else None)
        else:
            yield from (describe_training(job, trial) for trial in trials)


def _trial(caller: Caller, job: JobRow, name: str) -> TrialRow:
    return next(trial for trial in tuned_trials(caller.store, job.name) if trial.trial_id == name)


def _definition(asked: Mapping[str, Any], job: JobRow, trial: TrialRow) -> dict[str, Any]:
    """Of a tuning job's request the definition that a trial is of."""
    several = {each.get("DefinitionName"): each for each in asked.get("TrainingJobDefinitions", ())}
    found = several.get(trial.hyperparameters.get(ESTIMATOR)) if several else asked["TrainingJobDefinition"]
    definition: dict[str, Any] = dict(found or {})
    if "ResourceConfig" not in definition and (tuning := definition.get("HyperParameterTuningResourceConfig")):
        names = ("InstanceType", "InstanceCount", "VolumeSizeInGB")
        definition["ResourceConfig"] = {"VolumeSizeInGB": 0, **{name: tuning[name] for name in names if name in tuning}}
    return definition
