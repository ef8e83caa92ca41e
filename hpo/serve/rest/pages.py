"""Pages of the list of jobs: search, filter, order, and cursors that stay right while jobs come and go."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from hpo.serve.errors import RefusedError
from hpo.serve.following import Line

Sort: TypeAlias = Literal["created", "ended", "name", "status", "strategy", "best", "cost", "seconds", "owner"]
_FIELDS: dict[str, str] = {
    "created": "CreationTime",
    "ended": "HyperParameterTuningEndTime",
    "name": "HyperParameterTuningJobName",
    "status": "HyperParameterTuningJobStatus",
    "strategy": "Strategy",
    "best": "BestObjectiveValue",
    "cost": "BilledCost",
    "seconds": "BilledWorkerSeconds",
    "owner": "Owner",
}
_SEARCHED = ("HyperParameterTuningJobName", "Owner", "Strategy", "ObjectiveMetricName")


def page_of(
    lines: Iterable[Line],
    *,
    malformed: Collection[str],
    search: str,
    status: str,
    sort: Sort,
    descending: bool,
    limit: int,
    after: str,
) -> bytes:
    """A page as JSON: `jobs`, the cursor of the `next` page or null, how many match in all, and what is `malformed`.

    Args:
        lines: all jobs.
        malformed: names of jobs whose rows cannot be read, which are on no page.
        search: words, each of which has to be in the name, the owner, the strategy, the metric or a tag.
        status: statuses with commas between; empty is any.
        sort: what by; jobs that have no such value come last.
        descending: the largest first.
        limit: jobs at most.
        after: the cursor of a page before.

    Raises:
        RefusedError: the cursor is none.
    """
    words, statuses = search.lower().split(), {each for each in status.split(",") if each}
    found = [line for line in lines if _matches(line.values, words, statuses)]
    keys = [(_key(line.values, sort), line) for line in found]
    some = [each for each in keys if each[0][0] is not None]
    none = [each for each in keys if each[0][0] is None]
    some.sort(key=lambda each: each[0], reverse=descending)
    none.sort(key=lambda each: each[0][1], reverse=descending)
    ordered = [*some, *none]
    begin = _begin([key for key, _ in ordered], after, descending=descending) if after else 0
    page = ordered[begin : begin + limit]
    following = _cursor(page[-1][0]) if begin + limit < len(ordered) else None
    texts = b",".join(line.text for _, line in page)
    found_all = texts, json.dumps(following).encode(), len(ordered), json.dumps(sorted(malformed)).encode()
    return b'{"jobs":[%s],"next":%s,"total":%d,"malformed":%s}' % found_all


_Key: TypeAlias = tuple[Any, str]


def _key(values: Mapping[str, Any], sort: Sort) -> _Key:
    value = values.get(_FIELDS[sort])
    return (value.timestamp() if isinstance(value, datetime) else value), values["HyperParameterTuningJobName"]


def _matches(values: Mapping[str, Any], words: list[str], statuses: set[str]) -> bool:
    if statuses and values["HyperParameterTuningJobStatus"] not in statuses:
        return False
    text = " ".join([*(str(values.get(name) or "") for name in _SEARCHED), str(values.get("Tags") or "")]).lower()
    return all(word in text for word in words)


def _cursor(key: _Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def _begin(keys: list[_Key], after: str, *, descending: bool) -> int:
    """The place behind a cursor's, whether its job is there still or not."""
    try:
        value, name = json.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        key: _Key = (value, str(name))
        for place, each in enumerate(keys):
            if each[0] is None and value is not None:
                return place
            if (each[0] is None) == (value is None):
                own, other = (each[1:], key[1:]) if value is None else (each, key)
                if (own < other) if descending else (own > other):
                    return place
    except (TypeError, ValueError) as error:
        raise RefusedError(400, "Invalid", f"after is {after!r}, which no page before gave", field="after") from error
    return len(keys)
