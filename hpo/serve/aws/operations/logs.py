"""Operations of CloudWatch Logs on what trainings say, as the service's clients show it while they wait."""

from __future__ import annotations

import re
from typing import Any

from hpo.serve.aws.errors import ServiceError
from hpo.serve.aws.operations.caller import Caller

GROUP = "/aws/sagemaker/TrainingJobs"
_HOST = "algo-1"
"""The one stream of a training: what its driver says; trials of a tuning job say nothing of their own."""

_EVENTS = 1000
_TOKEN = re.compile(r"f/(\d{1,12})")


def streams(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeLogStreams."""
    prefix = request.get("logStreamNamePrefix", "")
    name = prefix.partition("/")[0]
    stream = f"{name}/{_HOST}"
    lines = _lines(caller, request.get("logGroupName", ""), name)
    return {"logStreams": [{"logStreamName": stream}] if lines and stream.startswith(prefix) else []}


def events(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """GetLogEvents, from the head on."""
    name, _, host = request["logStreamName"].partition("/")
    if host != _HOST:
        raise _none("stream")
    token = request.get("nextToken", "f/0")
    if (found := _TOKEN.fullmatch(token)) is None:
        raise ServiceError("InvalidParameterException", f"nextToken is {token!r:.100}, of no response of this server")
    begin, most = int(found[1]), request.get("limit", _EVENTS)
    since, until = request.get("startTime", 0), request.get("endTime", float("inf"))
    lines = _lines(caller, request.get("logGroupName", ""), name)
    taken = [(place, at, text) for place, (at, text) in enumerate(lines) if place >= begin and since <= at < until]
    shown = taken[:most]
    forward = shown[-1][0] + 1 if shown else begin
    return {
        "events": [{"timestamp": at, "message": text, "ingestionTime": at} for _, at, text in shown],
        "nextForwardToken": f"f/{forward}",
        "nextBackwardToken": token,
    }


def _lines(caller: Caller, group: str, name: str) -> list[tuple[int, str]]:
    """What a training has said: milliseconds and text."""
    if group != GROUP:
        raise _none("group")
    job, trial = caller.training_job(name)
    return [] if trial is not None else [(int(line.at * 1000), line.text) for line in caller.store.lines(job.name)]


def _none(what: str) -> ServiceError:
    return ServiceError("ResourceNotFoundException", f"The specified log {what} does not exist.")
