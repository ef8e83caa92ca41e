"""A training job of the record, or a trial of a tuning job, in the form of SageMaker's DescribeTrainingJob response."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from hpo.jobs import RAISED, archive_of
from hpo.record import (
    MAX_TRIAL_RUNTIME,
    MAX_TRIAL_WAIT,
    JobRow,
    ReportRow,
    Store,
    TrialQuery,
    TrialRow,
    is_training,
    status_and_reason,
    training_job_name,
    when,
)
from hpo.sagemaker.description import describe, describe_act, training_job_status, whose
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.parts import ESTIMATOR, parts_of

ARN = "arn:aws:sagemaker:local:000000000000:training-job/"
"""What stands before a training's name in its ARN; there is no account, and no region."""

LONGEST_REASON = 1024
"""Letters of a reason of failure in the API."""

_LIMITS = {
    "max_runtime_in_seconds": "MaxRuntimeExceeded",
    "max_wait": "MaxWaitTimeExceeded",
    MAX_TRIAL_RUNTIME: "MaxRuntimeExceeded",
    MAX_TRIAL_WAIT: "MaxWaitTimeExceeded",
}
"""Secondary statuses of a job, or of a trial, that a limit stopped, by the word that its reason begins with."""


def read_training(store: Store, name: str, trial_id: str | None = None) -> dict[str, Any]:
    """The response for a training job, or for a trial of a tuning job, as it is in the record now.

    Args:
        store: the record.
        name: the job.
        trial_id: the trial; None for that of a training job.

    Raises:
        ConfigurationError: there is no such job or trial.
    """
    job = store.job(name)
    if trial_id is None and not is_training(job):
        raise ConfigurationError(f"job {name!r} is a tuning job; name one of its trials")
    trial = next(iter(store.trials(name)), None) if trial_id is None else _found(store, name, trial_id)
    reports = store.reports(name, trial.trial_id) if trial else []
    billed = store.billed(name)
    # All that a training job holds gangs for is its own; what gangs of a search held for no trial is no trial's.
    own = [seconds for (of, _), seconds in billed.items() if is_training(job) or (trial and of == trial.trial_id)]
    return describe_training(job, trial, last=reports[-1] if reports else None, worker_seconds=sum(own))


def _found(store: Store, name: str, trial_id: str) -> TrialRow:
    for _, found in store.find_trials(TrialQuery(most=1, job=name, trial_id=trial_id)):
        return found
    trials = {trial.trial_id: trial for trial in store.trials(name)}
    if trial_id not in trials:
        raise ConfigurationError(f"job {name!r} has no trial {trial_id!r}{did_you_mean(trial_id, trials)}")
    return trials[trial_id]


def describe_any(store: Store, name: str) -> dict[str, Any]:
    """A job of the record in the response of its kind, a tuning or a training job's, with its `Summary` beside.

    Args:
        store: the record.
        name: the job.

    Raises:
        ConfigurationError: there is no such job.
    """
    job, acts = store.job(name), store.acts(name)
    if not is_training(job):
        return describe(job, store.trials(name), acts)
    told = {"Acts": [describe_act(act) for act in acts]} if acts else {}
    return {
        **read_training(store, name),
        **told,
        "Summary": {**job.summary, **whose(job), RAISED: job.spec.get(RAISED, [])},
    }


def describe_training(
    job: JobRow, trial: TrialRow | None, *, last: ReportRow | None = None, worker_seconds: float = 0.0
) -> dict[str, Any]:
    """The response; keys as in the API model, times as datetimes in UTC.

    Args:
        job: a training job, or the tuning job of the trial.
        trial: the trial; None where a training job has not begun it.
        last: its last report.
        worker_seconds: what was billed for it.
    """
    alone, spec = is_training(job), job.spec
    name = job.name if alone or trial is None else training_job_name(job.name, trial.trial_id)
    status, reason = _status(job, trial, alone=alone)
    transitions = list(_transitions(job, trial, status, reason, alone=alone))
    workers = _workers(spec, trial)
    runtime, wait = ("max_runtime_in_seconds", "max_wait") if alone else (MAX_TRIAL_RUNTIME, MAX_TRIAL_WAIT)
    longest, in_all = spec.get(runtime), spec.get(wait)
    response: dict[str, Any] = {
        "TrainingJobName": name,
        "TrainingJobArn": f"{ARN}{name}",
        "ModelArtifacts": {"S3ModelArtifacts": _artifacts(job, trial, name)},
        "TrainingJobStatus": status,
        "SecondaryStatus": transitions[-1]["Status"],
        "HyperParameters": _as_text(
            {**spec["estimator"]["hyperparameters"], **(trial.hyperparameters if trial else {})}
        ),
        "AlgorithmSpecification": {
            "AlgorithmName": _algorithm(spec),
            "TrainingInputMode": "File",
            "MetricDefinitions": _metric_definitions(spec, trial, last),
        },
        "InputDataConfig": [_channel(*each) for each in spec["inputs"].items()],
        "OutputDataConfig": {"S3OutputPath": str(spec.get("storage_path") or "")},
        "ResourceConfig": {"InstanceCount": workers},
        "StoppingCondition": {
            **({"MaxRuntimeInSeconds": longest} if longest else {}),
            **({"MaxWaitTimeInSeconds": in_all} if in_all else {}),
        },
        "EnableManagedSpotTraining": bool(in_all),
        "CreationTime": when(job.created_at if alone else _begun(job, trial)),
        "LastModifiedTime": when(job.heard if not (trial and trial.ended_at) else trial.ended_at),
        "SecondaryStatusTransitions": transitions,
        "FinalMetricDataList": _metrics(last),
    }
    if reason and status == "Failed":
        response["FailureReason"] = reason[:LONGEST_REASON]
    if trial is not None and trial.started_at is not None:
        response["TrainingStartTime"] = when(trial.started_at)
        ended = _ended(job, trial, alone=alone)
        if ended is not None:
            response["TrainingEndTime"] = when(ended)
        until = job.now if ended is None else ended
        response["TrainingTimeInSeconds"] = max(1, math.ceil(until - trial.started_at))
    if worker_seconds:
        # As there, where the bill is these seconds times the instances.
        response["BillableTimeInSeconds"] = max(1, math.ceil(worker_seconds / workers))
    return response


def _artifacts(job: JobRow, trial: TrialRow | None, name: str) -> str:
    """Where the model is: its archive, where the job makes some, once it has ended with a model."""
    if trial is None:
        return ""
    archive = archive_of(job.spec, name)
    if not archive:
        return trial.checkpoint
    ended = trial.status in ("Completed", "Stopped") and trial.ended_at is not None
    return archive if ended and trial.files else ""


def _status(job: JobRow, trial: TrialRow | None, *, alone: bool) -> tuple[str, str]:
    """The status in the API's words, and the reason for it."""
    if alone or trial is None:
        return status_and_reason(job)
    reason = trial.failure_reason or (f"{trial.stopped_by} reached" if trial.stopped_by in _LIMITS else "")
    return ("Failed" if trial.status == "Diverged" else training_job_status(trial)), reason


def _transitions(
    job: JobRow, trial: TrialRow | None, status: str, reason: str, *, alone: bool
) -> Iterator[dict[str, Any]]:
    """The statuses that a training had, as far as the record tells."""
    created = job.created_at if alone else _begun(job, trial)
    started = trial.started_at if trial else None
    ended = _ended(job, trial, alone=alone)
    over = status in ("Completed", "Failed", "Stopped")
    if started is None:
        message = "Preparing the workers for training"
        yield _transition("Starting" if alone or over else "Pending", created, ended if over else None, message)
    else:
        yield _transition("Starting", created, started, "Preparing the workers for training")
        yield _transition("Training", started, ended if over else None, "Training is in progress")
    if status == "Stopping":
        yield _transition("Stopping", job.now, None, reason or "Stopping the training job")
    elif over:
        at = job.now if ended is None else ended
        limit = next((word for key, word in _LIMITS.items() if reason.startswith(key)), "Stopped")
        yield _transition(limit if status == "Stopped" else status, at, at, reason or f"Training job is {status}")


def _transition(status: str, began: float, ended: float | None, message: str) -> dict[str, Any]:
    end = {} if ended is None else {"EndTime": when(max(began, ended))}
    return {"Status": status, "StartTime": when(began), **end, "StatusMessage": message}


def _begun(job: JobRow, trial: TrialRow | None) -> float:
    return job.created_at if trial is None or trial.started_at is None else trial.started_at


def _ended(job: JobRow, trial: TrialRow | None, *, alone: bool) -> float | None:
    return job.ended_at if alone or trial is None else trial.ended_at


def _workers(spec: Mapping[str, Any], trial: TrialRow | None) -> int:
    """The workers of the training, the most where that is a range; 1 in the driver's own process."""
    own = {**spec["estimator"]["hyperparameters"], **(trial.hyperparameters if trial else {})}
    asked = spec["estimator"]["scaling"].get("num_workers")
    workers = asked if asked == 0 else own.get("num_workers") or asked
    most = workers[-1] if isinstance(workers, list | tuple) else workers
    return max(1, most) if isinstance(most, int) else 1


def _algorithm(spec: Mapping[str, Any]) -> str:
    """The trainer's class, without its module."""
    return str(spec["estimator"]["trainer"]).rpartition(":")[2].rpartition(".")[2]


def _metric_definitions(
    spec: Mapping[str, Any], trial: TrialRow | None, last: ReportRow | None
) -> list[dict[str, str]]:
    """The metrics of a training: those that its program prints, those of its last report, and the objective."""
    estimator = spec["estimator"]
    own = parts_of(estimator).get(str(trial.hyperparameters.get(ESTIMATOR)) if trial else "", estimator)
    found = {each["Name"]: each for each in own.get("options", {}).get("metric_definitions") or ()}
    names = [*(last.metrics if last else ()), *filter(None, [spec.get("objective_metric_name")])]
    return [*found.values(), *(printed_metric(name) for name in dict.fromkeys(names) if name not in found)]


def printed_metric(name: str) -> dict[str, str]:
    """Return the definition of a metric as the service's XGBoost prints it.

    Args:
        name: of the metric, such as "validation:auc".
    """
    number = r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)"
    return {"Name": name, "Regex": f".*\\[[0-9]+\\].*#011{name.replace(':', '-')}:{number}.*"}


def _channel(name: str, channel: Mapping[str, Any]) -> dict[str, Any]:
    files = channel.get("files") or []
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": str(files[0])}} if files else {}
    return {"ChannelName": name, "DataSource": source}


def _metrics(last: ReportRow | None) -> list[dict[str, Any]]:
    if last is None:
        return []
    finite = {name: value for name, value in last.metrics.items() if math.isfinite(value)}
    return [{"MetricName": name, "Value": float(value), "Timestamp": when(last.at)} for name, value in finite.items()]


def _as_text(values: Mapping[str, Any]) -> dict[str, str]:
    """Hyperparameters as the API has them: texts, and JSON of what is neither a text nor a number."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in values.items()
        if value is not None
    }
