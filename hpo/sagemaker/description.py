"""A job of the record in the form of SageMaker's Describe response, for users' scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from hpo.jobs import RAISED
from hpo.ranges import range_from_json
from hpo.record import (
    EARLIER_BEST,
    ActRow,
    JobRow,
    JobView,
    State,
    TrialRow,
    TrialStatus,
    is_held,
    objective,
    runtime,
    split,
    status_and_reason,
    tags_of,
    when,
)
from trainers.parts import ESTIMATOR, parts_of

_UNDER_WAY = ("Pending", "Running", "Paused")


def describe(job: JobRow, runs: Sequence[TrialRow], acts: Sequence[ActRow] = ()) -> dict[str, Any]:
    """The response for one job; keys as in the API model, times as datetimes in UTC.

    Args:
        job: its row.
        runs: its trials, and its un-tuned run if there is one. That is `BestTrainingJob` where it is better than all
            trials; beside it, `UntunedTrainingJob` and `Gain` say how tuning compares with it. They, too, are names of
            Warmband's own.
        acts: what persons did to it; the API has no name for that.
    """
    spec = job.spec
    status, reason = status_and_reason(job)
    trials, untuned = split(runs)
    view = JobView(job=job, trials=trials, untuned=untuned)
    response: dict[str, Any] = {
        "HyperParameterTuningJobName": job.name,
        "HyperParameterTuningJobConfig": {
            "Strategy": spec["strategy"],
            **({"StrategyConfig": spec["strategy_request"]} if spec["strategy_request"] else {}),
            **_parts(spec),
            "HyperParameterTuningJobObjective": {
                "Type": spec["objective_type"],
                "MetricName": spec["objective_metric_name"],
            },
            "ResourceLimits": {
                "MaxNumberOfTrainingJobs": spec["max_jobs"],
                "MaxParallelTrainingJobs": spec["max_parallel_jobs"],
                **({"MaxRuntimeInSeconds": seconds} if (seconds := spec["max_runtime_in_seconds"]) else {}),
            },
            "ParameterRanges": {**_chosen_ranges(spec), **spec["parameter_ranges"]},
            "TrainingJobEarlyStoppingType": spec["early_stopping_type"],
            **({"TuningJobCompletionCriteria": asked} if (asked := spec.get("completion_request")) else {}),
            "RandomSeed": spec["random_seed"],
        },
        **({"WarmStartConfig": parents} if (parents := spec.get("warm_start_request")) else {}),
        **({"TakesEffect": effects} if (effects := spec.get("takes_effect")) else {}),
        **({"Autotune": {"Mode": "Enabled"}} if spec.get("autotune") is not None else {}),
        **_definitions(spec),
        "HyperParameterTuningJobStatus": status,
        "CreationTime": when(job.created_at),
        "LastModifiedTime": when(job.heard),
        **counters(Counter(_state(job, trial) for trial in trials)),
        "TuningJobCompletionDetails": {
            "NumberOfTrainingJobsObjectiveNotImproving": job.summary.get("trials_not_improving", 0),
            **({"ConvergenceDetectedTime": when(at)} if (at := job.summary.get("converged_at")) else {}),
        },
        "ConsumedResources": {"RuntimeInSeconds": round(runtime(job))},
        "Summary": {**job.summary, **whose(job), RAISED: job.spec.get(RAISED, [])},
    }
    if acts:
        response["Acts"] = [describe_act(act) for act in acts]
    if job.ended_at is not None:
        response["HyperParameterTuningEndTime"] = when(job.ended_at)
    if reason:
        response["StatusReason"] = reason
        if status != "Completed":
            response["FailureReason"] = reason
    if (best := view.result) is not None:
        response["BestTrainingJob"] = {**describe_trial(job, best), **_mean(view, best)}
    if untuned is not None:
        reached = {"Status": untuned.status, "Resource": untuned.resource}
        response["UntunedTrainingJob"] = {**describe_trial(job, untuned), **reached}
    if view.gap is not None:
        response["Gain"] = view.gap.to_json()
    if spec.get(EARLIER_BEST) and (overall := view.overall_best) is not None:
        response["OverallBestTrainingJob"] = describe_trial(job, overall)
    return response


def _mean(view: JobView, trial: TrialRow) -> dict[str, Any]:
    """The mean of a trial's configuration, by which it is compared, where each is trained several times."""
    if trial is view.untuned or (value := view.means.get(trial.number)) is None:
        return {}
    return {"MeanObjectiveValue": value, "MeanObjectiveStandardError": view.mean_error(trial)}


def _parts(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The searcher and the scheduler that a job was given, which the API has no name for."""
    options = spec.get("strategy_config") or {}
    given = {role.title(): options[role] for role in ("searcher", "scheduler") if role in options}
    return {role: {key.title(): value for key, value in part.items()} for role, part in given.items()}


def _chosen_ranges(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters whose ranges autotune chose, with a value of each: the trainer's own, or its range's middle.

    Their ranges stand among the others, too, and behind these, so that whoever looks a name up finds its range.
    """
    ranges, static = spec["hyperparameter_ranges"], spec["estimator"]["hyperparameters"]
    names = [each["name"] for each in spec.get("autotune") or () if each["name"] in ranges]
    hints = {name: static.get(name, range_from_json(ranges[name]).at(0.5)) for name in names}
    entries = [{"Name": name, "ValueHint": str(value)} for name, value in hints.items()]
    return {"AutoParameters": entries} if entries else {}


def _definitions(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What trains, by the API's name for one or for several."""
    estimator = spec["estimator"]
    parts = parts_of(estimator)
    if not parts:
        return {"TrainingJobDefinition": {"StaticHyperParameters": estimator["hyperparameters"]}}
    metrics = estimator["options"].get("metrics", {})
    return {
        "TrainingJobDefinitions": [
            {
                "DefinitionName": name,
                "TuningObjective": {
                    "Type": spec["objective_type"],
                    "MetricName": metrics.get(name, spec["objective_metric_name"]),
                },
                "StaticHyperParameters": part["hyperparameters"],
                "HyperParameterRanges": {
                    kind: _own_ranges(name, ranges)
                    for kind, ranges in {**_chosen_ranges(spec), **spec["parameter_ranges"]}.items()
                },
            }
            for name, part in parts.items()
        ]
    }


def _own_ranges(name: str, ranges: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of a job's ranges those of one trainer, under its own names."""
    start = f"{name}."
    return [
        {**each, "Name": each["Name"].removeprefix(start)} for each in ranges if str(each["Name"]).startswith(start)
    ]


def describe_trial(job: JobRow, trial: TrialRow) -> dict[str, Any]:
    """One trial, of the job or of a parent of it, in the form of the response's training jobs."""
    value = objective(job, trial)
    described: dict[str, Any] = {
        "TrainingJobName": trial.trial_id,
        "TuningJobName": trial.job,
        "TrainingJobStatus": training_job_status(trial),
        "TunedHyperParameters": {name: str(value) for name, value in trial.hyperparameters.items()},
        "ObjectiveStatus": "Pending" if trial.ended_at is None else "Failed" if value is None else "Succeeded",
    }
    if parts_of(job.spec["estimator"]):
        described["TrainingJobDefinitionName"] = trial.hyperparameters.get(ESTIMATOR)
    if trial.started_at is not None:
        described["CreationTime"] = described["TrainingStartTime"] = when(trial.started_at)
    if trial.ended_at is not None:
        described["TrainingEndTime"] = when(trial.ended_at)
    if trial.failure_reason:
        described["FailureReason"] = trial.failure_reason
        described["Traceback"] = trial.traceback
        described["Logs"] = trial.logs
    if trial.stopped:
        described["StoppedBy"] = trial.stopped_by
    if trial.given:
        described["Given"] = trial.given_as
    if trial.believed:
        described["Believed"] = trial.believed
    if trial.details:
        described["Details"] = trial.details
    if value is not None:
        described["FinalHyperParameterTuningJobObjectiveMetric"] = {
            "Type": job.spec["objective_type"],
            "MetricName": job.spec["objective_metric_name"],
            "Value": value,
        }
    return described


def describe_act(act: ActRow) -> dict[str, Any]:
    """What a person did to a job, in the manner of the response."""
    return {
        "Time": when(act.at),
        "By": act.by,
        "Door": act.door,
        "Kind": act.kind,
        "TuningJobName": act.job,
        "Arguments": act.arguments,
        **({"JobDeletedTime": when(act.gone_at)} if act.gone_at is not None else {}),
    }


def training_job_status(trial: TrialRow) -> str:
    """A trial's status in the API's words, which have one for all that is under way and none for what diverged."""
    return _status(trial.status)


def training_job_statuses() -> dict[str, str]:
    """The API's words for all statuses of trials."""
    return {status: _status(status) for status in get_args(TrialStatus)}


def _status(status: str) -> str:
    if status in _UNDER_WAY:
        return "InProgress"
    return "Stopped" if status == "Diverged" else status


def whose(job: JobRow) -> dict[str, Any]:
    """Whose job it is, and where its driver runs, or ran."""
    driven = {**job.driver, "holds_the_lease": is_held(job)} if job.driver else None
    return {"owner": job.owner, "driver": driven, "tags": tags_of(job.spec.get("tags"))}


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
