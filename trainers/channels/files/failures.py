"""What is wrong where a file cannot be read, and what helps."""

from __future__ import annotations

import re

from trainers.storage import shown

_LONGEST = 240
_KINDS = (
    (
        r"does not exist|No such file|NO_SUCH_KEY|NoSuchKey|RESOURCE_NOT_FOUND|HTTP status 404",
        "is gone since its channel was opened; put it back, or open the channel again",
    ),
    (
        r"[Ee]xpired|ACCESS_DENIED|INVALID_ACCESS_KEY|INVALID_CLIENT_TOKEN|UNAUTHENTICATED|PERMISSION_DENIED|"
        r"[Pp]ermission denied|HTTP status 40[013]",
        "may not be read: credentials have expired, or do not allow it; renew them on every node, and resume the job",
    ),
    (
        r"SLOW_DOWN|SlowDown|THROTTLING|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|HTTP status 50\d|HTTP status 429",
        "is in a store that answers with errors after several tries; try again later, or with fewer workers",
    ),
    (
        r"NETWORK_CONNECTION|curlCode|resolve host|[Cc]ould not connect|REQUEST_TIMEOUT|timed? ?out",
        "is in a store that does not answer; check the endpoint and the network, and resume the job",
    ),
)


def unread(path: str, problem: object) -> str:
    """The error for a file that cannot be read, with what pyarrow said of it."""
    text = shown(str(problem))
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    for pattern, said in _KINDS:
        if re.search(pattern, str(problem)):
            what, _, remedy = said.partition("; ")
            return f"{path} {what} ({text}); {remedy}"
    return f"{path} is cut short or damaged ({text}); write or copy it again"
