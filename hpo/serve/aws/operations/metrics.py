"""Operations of CloudWatch on the metrics of training jobs, as the analytics of the service's clients ask for them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from hpo.record import ReportRow, when
from hpo.serve.aws.errors import ServiceError
from hpo.serve.aws.operations.caller import Caller

NAMESPACE = "/aws/sagemaker/TrainingJobs"

_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Average": lambda values: math.fsum(values) / len(values),
    "Sum": math.fsum,
    "Minimum": min,
    "Maximum": max,
    "SampleCount": lambda values: float(len(values)),
}
_DIMENSIONS = ("TrainingJobName", "Host")
_MOST = 1440
"""Datapoints of one response of GetMetricStatistics, as there."""


def statistics(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """GetMetricStatistics."""
    names = request.get("Statistics") or []
    if not names or request.get("ExtendedStatistics"):
        raise _wrong("Statistics has to name some of " + ", ".join(_STATISTICS) + "; percentiles are not here")
    buckets = _buckets(caller, request, request)
    if len(buckets) > _MOST:
        raise _wrong(f"the request is for {len(buckets)} datapoints; at most {_MOST}: give a longer Period")
    points = [
        {"Timestamp": at, "Unit": "None", **{name: _STATISTICS[name](values) for name in names}}
        for at, values in buckets.items()
    ]
    return {"Label": request["MetricName"], "Datapoints": points}


def data(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """GetMetricData; all of it is one page."""
    if request.get("NextToken"):
        raise ServiceError("InvalidNextToken", "there are no further pages; leave NextToken out")
    results = [
        _result(caller, request, query) for query in request["MetricDataQueries"] if query.get("ReturnData", True)
    ]
    return {"MetricDataResults": results, "Messages": []}


def _result(caller: Caller, request: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, Any]:
    stat = query.get("MetricStat")
    if stat is None or stat["Stat"] not in _STATISTICS:
        known = ", ".join(_STATISTICS)
        raise _wrong(
            f"query {query['Id']!r} has no MetricStat, or its Stat is none of {known}; expressions are not here"
        )
    buckets = _buckets(caller, {**stat["Metric"], "Period": stat["Period"]}, request)
    points = list(buckets.items())
    if request.get("ScanBy") != "TimestampAscending":
        points.reverse()
    return {
        "Id": query["Id"],
        "Label": query.get("Label") or stat["Metric"].get("MetricName", ""),
        "Timestamps": [at for at, _ in points],
        "Values": [_STATISTICS[stat["Stat"]](values) for _, values in points],
        "StatusCode": "Complete",
    }


def _buckets(caller: Caller, metric: Mapping[str, Any], span: Mapping[str, Any]) -> dict[datetime, list[float]]:
    """The values of a metric, by the period in which they came; empty where there is no such metric."""
    start, end, period = span["StartTime"].timestamp(), span["EndTime"].timestamp(), metric["Period"]
    if not start < end:
        raise _wrong("StartTime has to be before EndTime")
    start -= start % min(period, 60)  # As there: of a minute that has begun, all counts.
    found: defaultdict[float, list[float]] = defaultdict(list)
    for report in _reports(caller, metric):
        value = report.metrics.get(metric.get("MetricName", ""))
        if value is not None and math.isfinite(value) and start <= report.at < end:
            found[start + (report.at - start) // period * period].append(float(value))
    return {when(at): found[at] for at in sorted(found)}


def _reports(caller: Caller, metric: Mapping[str, Any]) -> list[ReportRow]:
    if metric.get("Namespace") != NAMESPACE:
        return []
    named = {each["Name"]: each["Value"] for each in metric.get("Dimensions") or ()}
    name = next((named[each] for each in _DIMENSIONS if each in named), None)
    if name is None:
        return []
    try:
        job, trial = caller.training_job(name.partition("/")[0])  # A host is the training job, and /algo-1 behind it.
    except ServiceError:
        return []
    trials = [trial] if trial else [row for row in caller.store.trials(job.name) if row.number >= 0]
    return caller.store.reports(job.name, trials[0].trial_id) if trials else []


def _wrong(message: str) -> ServiceError:
    return ServiceError("InvalidParameterValue", message)
