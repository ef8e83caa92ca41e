"""Errors of the service: a code that its clients know, a message and a status."""

from __future__ import annotations

from hpo.serve.errors import as_refusal

_CODES = {
    "Busy": "ThrottlingException",
    "TooManyRequests": "ThrottlingException",
    "InUse": "ResourceInUse",
    "NotFound": "ResourceNotFound",
    "Invalid": "ValidationException",
}
"""The service's codes, by the server's own kinds of errors; others are of the server, not of the request."""


class ServiceError(Exception):
    """An error that a client of the service is answered.

    Args:
        code: as the service has it, such as ValidationException or ResourceNotFound.
        message: for people.
        status: of HTTP.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def invalid(message: str) -> ServiceError:
    """The error of a request that asks for what does not go."""
    return ServiceError("ValidationException", message)


def as_service_error(error: Exception) -> ServiceError:
    """An error of Warmband's in the service's words."""
    if isinstance(error, ServiceError):
        return error
    refusal = as_refusal(error)
    code = _CODES.get(refusal.kind)
    return ServiceError(code or "ServiceUnavailable", str(refusal), 400 if code else 503)
