"""A job of the record in the form of SageMaker's Describe response, which users' scripts read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hpo.jobs import RAISED
from hpo.record import JobRow, State, TrialRow, is_held, tags_of

_UNDER_WAY = ("Pending", "Running", "Paused")


def describe(job: JobRow, trials: list[TrialRow]) -> dict[str, Any]:
    """The response for one job; keys as in the API model, times as datetimes in UTC."""
    spec = job.spec
    status, reason = status_and_reason(job)
    best = best_trial(job, trials)
    response: dict[str, Any] = {
        "HyperParameterTuningJobName": job.name,
        "HyperParameterTuningJobConfig": {
            "Strategy": spec["strategy"],
            **({"StrategyConfig": spec["strategy_request"]} if spec["strategy_request"] else {}),
            "HyperParameterTuningJobObjective": {
                "Type": spec["objective_type"],
                "MetricName": spec["objective_metric_name"],
            },
            "ResourceLimits": {
                "MaxNumberOfTrainingJobs": spec["max_jobs"],
                "MaxParallelTrainingJobs": spec["max_parallel_jobs"],
                **({"MaxRuntimeInSeconds": seconds} if (seconds := spec["max_runtime_in_seconds"]) else {}),
            },
            "ParameterRanges": spec["parameter_ranges"],
            "TrainingJobEarlyStoppingType": spec["early_stopping_type"],
            **({"TuningJobCompletionCriteria": asked} if (asked := spec.get("completion_request")) else {}),
            "RandomSeed": spec["random_seed"],
        },
        "TrainingJobDefinition": {"StaticHyperParameters": spec["estimator"]["hyperparameters"]},
        "HyperParameterTuningJobStatus": status,
        "CreationTime": when(job.created_at),
        "LastModifiedTime": when(job.heard),
        **counters(Counter(_state(job, trial) for trial in trials)),
        "TuningJobCompletionDetails": {
            "NumberOfTrainingJobsObjectiveNotImproving": job.summary.get("trials_not_improving", 0)
        },
        "ConsumedResources": {"RuntimeInSeconds": round(runtime(job))},
        "Summary": {**job.summary, **whose(job), RAISED: job.spec.get(RAISED, [])},
    }
    if job.ended_at is not None:
        response["HyperParameterTuningEndTime"] = when(job.ended_at)
    if reason:
        response["StatusReason"] = reason
        if status != "Completed":
            response["FailureReason"] = reason
    if best is not None:
        response["BestTrainingJob"] = describe_trial(job, best)
    return response


def describe_trial(job: JobRow, trial: TrialRow) -> dict[str, Any]:
    """One trial, in the form of the response's training jobs."""
    value = objective(job, trial)
    described: dict[str, Any] = {
        "TrainingJobName": trial.trial_id,
        "TuningJobName": job.name,
        "TrainingJobStatus": training_job_status(trial),
        "TunedHyperParameters": {name: str(value) for name, value in trial.hyperparameters.items()},
        "ObjectiveStatus": "Pending" if trial.ended_at is None else "Failed" if value is None else "Succeeded",
    }
    if trial.started_at is not None:
        described["CreationTime"] = described["TrainingStartTime"] = when(trial.started_at)
    if trial.ended_at is not None:
        described["TrainingEndTime"] = when(trial.ended_at)
    if trial.failure_reason:
        described["FailureReason"] = trial.failure_reason
        described["Traceback"] = trial.traceback
        described["Logs"] = trial.logs
    if trial.details:
        described["Details"] = trial.details
    if value is not None:
        described["FinalHyperParameterTuningJobObjectiveMetric"] = {
            "Type": job.spec["objective_type"],
            "MetricName": job.spec["objective_metric_name"],
            "Value": value,
        }
    return described


def training_job_status(trial: TrialRow) -> str:
    """A trial's status in the API's words, which have one for all that is under way and none for what diverged."""
    return _status(trial.status)


def _status(status: str) -> str:
    if status in _UNDER_WAY:
        return "InProgress"
    return "Stopped" if status == "Diverged" else status


def status_and_reason(job: JobRow) -> tuple[str, str]:
    """A job whose driver is gone is Failed, whatever was written last."""
    if job.lost:
        return "Failed", (
            f"its driver was last heard of {job.silent:.0f} s ago, and the record says {job.status}; to go on: "
            f"hpo resume {job.name}"
        )
    return job.status, job.reason


def runtime(job: JobRow) -> float:
    """Seconds for which a job was driven: from its start to its end, or its last heartbeat, without the gaps."""
    end = job.ended_at or job.heard
    runs = job.summary.get("runs") or [[job.created_at, end]]
    return float(sum((max(began, end) if ended is None else ended) - began for began, ended in runs))


def best_trial(job: JobRow, trials: list[TrialRow]) -> TrialRow | None:
    """The trial with the best objective, ties to less resource, then to the first; None if none has one."""
    sign = 1.0 if job.spec["objective_type"] == "Maximize" else -1.0
    by_best = job.spec["objective_value"] == "best"
    ranked = [
        (-sign * value, (trial.best_resource or 0) if by_best else trial.resource, trial.number, trial)
        for trial in trials
        if trial.status not in ("Failed", "Diverged") and (value := objective(job, trial)) is not None
    ]
    return min(ranked, key=lambda each: each[:3])[3] if ranked else None


def ranked(job: JobRow, trials: list[TrialRow]) -> list[TrialRow]:
    """The trials, best first; those without an objective last, then those that diverged, and then that failed."""
    sign = -1.0 if job.spec["objective_type"] == "Maximize" else 1.0

    def rank(trial: TrialRow) -> tuple[int, bool, float, int]:
        value = objective(job, trial)
        ends = {"Diverged": 1, "Failed": 2}
        return ends.get(trial.status, 0), value is None, sign * (value or 0.0), trial.number

    return sorted(trials, key=rank)


def objective(job: JobRow, trial: TrialRow) -> float | None:
    """What the job compares trials by: the last value, or the best."""
    return trial.best_objective if job.spec["objective_value"] == "best" else trial.objective


def whose(job: JobRow) -> dict[str, Any]:
    """Whose job it is, and where its driver runs, or ran."""
    driven = {**job.driver, "holds_the_lease": is_held(job)} if job.driver else None
    return {"owner": job.owner, "driver": driven, "tags": tags_of(job.spec.get("tags"))}


def when(seconds: float) -> datetime:
    """Unix seconds as a datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def counters(trials: Mapping[State, int]) -> dict[str, dict[str, int]]:
    """The response's two counters, of trials by their state."""
    statuses: Counter[str] = Counter()
    for state, number in trials.items():
        statuses[_status(state.status)] += number
    return {
        "TrainingJobStatusCounters": {
            **{name: statuses[name] for name in ("Completed", "InProgress", "Stopped")},
            "RetryableError": 0,
            "NonRetryableError": statuses["Failed"],
        },
        "ObjectiveStatusCounters": {
            "Succeeded": sum(number for state, number in trials.items() if state.ended and state.valued),
            "Pending": sum(number for state, number in trials.items() if not state.ended),
            "Failed": sum(number for state, number in trials.items() if state.ended and not state.valued),
        },
    }


def _state(job: JobRow, trial: TrialRow) -> State:
    valued = objective(job, trial) is not None
    return State(status=trial.status, ended=trial.ended_at is not None, valued=valued)
