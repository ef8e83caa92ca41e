"""Errors of the server as responses: what is wrong, in the form that all of its API has."""

from __future__ import annotations

import math
from collections.abc import Mapping

from starlette.responses import Response

from hpo.job_file import JobFileError
from hpo.record import is_away
from hpo.serve.encoding import encoded
from trainers.errors import ConfigurationError, DataError, LeaseError, NoJobError, NotReadyError, WarmbandError


class RefusedError(WarmbandError):
    """A request that is not served.

    Args:
        status: of HTTP.
        kind: the error's type, for programs.
        message: for people.
        field: of a job file or of the request, where one is wrong.
        fields: what is wrong with each value of a job file, by its keys with dots between them.
        wait: seconds after which it is worth another try; None says nothing of that.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        field: str = "",
        fields: Mapping[str, str] | None = None,
        wait: float | None = None,
    ) -> None:
        super().__init__(message)
        self.fields = dict(fields or {})
        self.status, self.kind, self.field, self.wait = status, kind, field, wait

    def response(self) -> Response:
        """The response that says it."""
        error: dict[str, object] = {"type": self.kind, "message": str(self)}
        if self.field:
            error["field"] = self.field
        if self.fields:
            error["fields"] = [{"field": field, "message": message} for field, message in self.fields.items()]
        headers = {} if self.wait is None else {"Retry-After": str(max(1, math.ceil(self.wait)))}
        return json_response({"error": error}, self.status, headers)


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(encoded(value), status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


def as_refusal(error: Exception) -> RefusedError:
    """An error of Warmband's as a response: what was asked for is wrong, or it does not go at present."""
    if isinstance(error, RefusedError):
        return error
    if is_away(error):
        return RefusedError(503, "DatabaseAway", str(error), wait=2.0)
    if isinstance(error, JobFileError):
        return RefusedError(400, "Invalid", str(error), fields=error.fields)
    if isinstance(error, LeaseError):
        return RefusedError(409, "InUse", str(error))
    if isinstance(error, NotReadyError):
        return RefusedError(409, "NotReady", str(error))
    if isinstance(error, NoJobError):
        return RefusedError(404, "NotFound", str(error))
    if isinstance(error, ConfigurationError | DataError):
        return RefusedError(400, "Invalid", str(error))
    return RefusedError(503, "Unavailable", str(error), wait=5.0)
