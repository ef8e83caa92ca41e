"""Operations on the tags of jobs."""

from __future__ import annotations

from typing import Any

from hpo.record import tags_of
from hpo.serve.aws.errors import ServiceError
from hpo.serve.aws.operations.caller import Caller
from hpo.serve.aws.operations.paging import page

MOST = 50
"""Tags of one job."""


def add(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """AddTags."""
    added = {tag["Key"]: tag["Value"] for tag in request["Tags"]}

    def change(tags: dict[str, str]) -> dict[str, str]:
        if len(both := {**tags, **added}) > MOST:
            raise ServiceError(
                "ResourceLimitExceeded", f"the job would have {len(both)} tags; at most {MOST} are allowed"
            )
        return both

    tags = caller.store.tag(caller.by_arn(request["ResourceArn"], changes=True).name, change)
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def listed(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListTags."""
    tags = tags_of(caller.by_arn(request["ResourceArn"]).spec.get("tags"))
    shown, more = page(caller, "ListTags", request, tags.items(), lambda tag: ("", tag[0]), by_default=MOST)
    return {"Tags": [{"Key": key, "Value": value} for key, value in shown], **more}


def delete(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteTags."""
    gone = set(request["TagKeys"])
    job = caller.by_arn(request["ResourceArn"], changes=True)
    caller.store.tag(job.name, lambda tags: {key: value for key, value in tags.items() if key not in gone})
    return {}
