"""Pages of lists: filters by name, status and times, an order, and a token for what follows."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from hpo.record import Key
from hpo.serve.aws.errors import invalid
from hpo.serve.aws.operations.caller import Caller

_T = TypeVar("_T")
_PAGE = 10
"""Entries of a page where the request does not say how many."""

_NOT_OF_QUERY = ("NextToken", "MaxResults")


def page(
    caller: Caller,
    operation: str,
    request: Mapping[str, Any],
    entries: Iterable[_T],
    key: Callable[[_T], Key],
    *,
    by_default: int = _PAGE,
) -> tuple[list[_T], dict[str, str]]:
    """One page of a list in memory; as `found_page`.

    Args:
        caller: whose key signs tokens.
        operation: of which it is a page.
        request: of the client.
        entries: that pass the request's filters.
        key: by what they are ordered; names are unique.
        by_default: entries of a page where the request does not say how many.

    Raises:
        ServiceError: the request's token is of another request, or of another key.
    """
    keyed = [(key(entry), entry) for entry in entries]
    return found_page(
        caller, operation, request, lambda after, most: behind(keyed, request, after)[:most], by_default=by_default
    )


def found_page(
    caller: Caller,
    operation: str,
    request: Mapping[str, Any],
    find: Callable[[Key | None, int], Sequence[tuple[Key, _T]]],
    *,
    by_default: int = _PAGE,
) -> tuple[list[_T], dict[str, str]]:
    """One page of a list, and the member NextToken where there is another page.

    Tokens hold the last entry's key and not a place, so that none is left out or told twice as jobs come and go.

    Args:
        caller: whose key signs tokens.
        operation: of which it is a page.
        request: of the client.
        find: finds entries with their keys, in order: those behind a key, or all, and so many at most.
        by_default: entries of a page where the request does not say how many.

    Raises:
        ServiceError: the request's token is of another request, or of another key.
    """
    query, token = _digest(operation, request), request.get("NextToken")
    after = _read(token, caller.key.secret, query) if token else None
    size = request.get("MaxResults") or by_default
    found = find(after, size + 1)
    shown = found[:size]
    more = {"NextToken": _write(shown[-1][0], caller.key.secret, query)} if len(found) > size else {}
    return [entry for _, entry in shown], more


def behind(keyed: Iterable[tuple[Key, _T]], request: Mapping[str, Any], after: Key | None) -> list[tuple[Key, _T]]:
    """The entries behind a key, or all, in the request's order."""
    down = descending(request)
    left = (pair for pair in keyed if after is None or (pair[0] < after if down else pair[0] > after))
    return sorted(left, key=lambda pair: pair[0], reverse=down)


def descending(request: Mapping[str, Any]) -> bool:
    """Whether the greatest comes first."""
    return bool(request.get("SortOrder") == "Descending")


def span(request: Mapping[str, Any], member: str) -> tuple[float, float]:
    """Unix seconds behind which and before which the request wants a time, by the time's member."""
    after, before = request.get(f"{member}After"), request.get(f"{member}Before")
    return after.timestamp() if after else -math.inf, before.timestamp() if before else math.inf


def within(request: Mapping[str, Any], described: Mapping[str, Any], name: str, status: str) -> bool:
    """Whether an entry passes a request's filters.

    Args:
        request: of the client.
        described: the entry, with its status and its times.
        name: the entry's.
        status: the member that is its status.
    """
    if request.get("NameContains", "").lower() not in name.lower():
        return False
    if request.get("StatusEquals", described[status]) != described[status]:
        return False
    for member in ("CreationTime", "LastModifiedTime"):
        after, before = request.get(f"{member}After"), request.get(f"{member}Before")
        if (after and described[member] <= after) or (before and described[member] >= before):
            return False
    return True


def _digest(operation: str, request: Mapping[str, Any]) -> str:
    asked = {name: value for name, value in request.items() if name not in _NOT_OF_QUERY}
    return hashlib.sha256(json.dumps([operation, asked], sort_keys=True, default=str).encode()).hexdigest()[:32]


def _write(key: Key, secret: str, query: str) -> str:
    held = json.dumps([query, *key]).encode()
    return base64.urlsafe_b64encode(_mac(held, secret) + held).decode()


def _read(token: str, secret: str, query: str) -> Key:
    try:
        whole = base64.urlsafe_b64decode(token.encode())
        mac, held = whole[:16], whole[16:]
        if not hmac.compare_digest(mac, _mac(held, secret)):
            raise ValueError
        parts: Sequence[Any] = json.loads(held)
    except ValueError:
        raise invalid("Invalid NextToken; give the one of the page before, by the same access key") from None
    if parts[0] != query:
        raise invalid("NextToken is of another request; repeat the request of the page before, with its token alone")
    return parts[1], parts[2]


def _mac(held: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), held, "sha256")[:16]
