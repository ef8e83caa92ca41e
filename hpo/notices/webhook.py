"""Post of a notice to a webhook: signed, with an id, to http or https alone, and not to where that redirects."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import time
import urllib.error
import urllib.request
from typing import IO, Any

from hpo.notices.attempts import NotNowError, RefusedError
from hpo.notices.entries import Webhook, checked_url
from hpo.notices.notice import Notice
from trainers.errors import ConfigurationError

AGAIN = frozenset({408, 425, 429})
"""Answers below 500 after which another attempt may go better."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """No request: the answer is an error like others."""
        return


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a body: HMAC-SHA256 over the timestamp, a full stop and the body, in hexadecimal digits."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def post(hook: Webhook, notice: Notice, seconds: float) -> None:
    """Posts a notice once.

    Args:
        hook: where.
        notice: the notice.
        seconds: how long each step of it may take.

    Raises:
        NotNowError: it was not taken, and another attempt may go better.
        RefusedError: no attempt will.
    """
    request = _request(hook, notice)
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=seconds) as response:
            status = int(response.status)
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        # An error's own words may have the URL in them.
        words = getattr(reason, "strerror", None) or type(reason).__name__
        raise NotNowError(f"no answer: {words}") from None
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise RefusedError(f"it answered {status}, and redirects are not followed; give the URL that it redirects to")
    raise (NotNowError if status >= 500 or status in AGAIN else RefusedError)(f"it answered {status}")


def _request(hook: Webhook, notice: Notice) -> urllib.request.Request:
    url = hook.url or variable(hook.url_variable)
    try:
        checked_url(url, f"the value of {hook.url_variable}")
    except ConfigurationError as error:
        raise RefusedError(str(error)) from None
    body, timestamp = notice.body(), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "warmband",
        "X-Warmband-Event": notice.event,
        "X-Warmband-Id": notice.id,
        "X-Warmband-Timestamp": timestamp,
    }
    if hook.secret_variable:
        headers["X-Warmband-Signature"] = f"v1={signature(variable(hook.secret_variable), timestamp, body)}"
    return urllib.request.Request(url, data=body, headers=headers, method="POST")


def variable(name: str | None) -> str:
    """The value of an environment variable.

    Raises:
        RefusedError: it is not set.
    """
    value = os.environ.get(name or "", "")
    if not value:
        raise RefusedError(f"the environment variable {name} is not set where the job's driver runs")
    return value
