"""Calls: which operation of which service a request asks for, and in which protocol; and responses to them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import parse_qsl

import cbor2
from starlette.responses import Response

from hpo.serve.aws.errors import ServiceError
from hpo.serve.aws.wire.models import model
from hpo.serve.aws.wire.query import error_xml, from_form, to_xml
from hpo.serve.aws.wire.requests import checked
from hpo.serve.aws.wire.responses import rendered

Protocol = Literal["json", "query", "cbor"]

_TARGETS = {"SageMaker": "sagemaker", "GraniteServiceVersion20100801": "cloudwatch", "Logs_20140328": "logs"}
_VERSIONS = {"2011-06-15": "sts", "2010-08-01": "cloudwatch"}
_CBOR_PATH = re.compile(r"/service/(\w+)/operation/(\w+)")
_QUERY_CODES = {
    "MissingAuthenticationTokenException": "MissingAuthenticationToken",
    "IncompleteSignatureException": "IncompleteSignature",
    "UnrecognizedClientException": "InvalidClientTokenId",
    "InvalidSignatureException": "SignatureDoesNotMatch",
    "AccessDeniedException": "AccessDenied",
    "ThrottlingException": "Throttling",
    "ValidationException": "ValidationError",
}
"""Codes that the protocol "query" has other words for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How a client talks, which is known before anything of its request is believed.

    Args:
        protocol: of the request, and so of the response.
        service: botocore's name of it; empty where the request names none.
        operation: its name, as it was asked for.
        request_id: of the response.
    """

    protocol: Protocol
    service: str
    operation: str
    request_id: str

    @property
    def signing_name(self) -> str:
        """For what requests are signed."""
        found = model(self.service)
        return str(found.signing_name)

    def refusal(self, error: ServiceError) -> Response:
        """The response that says an error."""
        code, message = error.code, str(error)
        if self.protocol == "query":
            code = _QUERY_CODES.get(code, code)
            theirs = error.status < 500
            return self._response(
                error_xml(self._namespace, code, message, self.request_id, theirs=theirs), error.status
            )
        shapes = model(self.service).shape_names if self.service else ()
        told = {"__type": code, ("Message" if code in shapes else "message"): message}
        return self._response(cbor2.dumps(told) if self.protocol == "cbor" else json.dumps(told).encode(), error.status)

    @property
    def _namespace(self) -> str:
        return str(model(self.service).metadata.get("xmlNamespace", "")) if self.service else ""

    def result(self, shape: Any, value: Mapping[str, Any]) -> Response:
        """The response that says a result.

        Raises:
            TypeError: it is not as the model has it.
        """
        if shape is None:
            shown: Any = {}
        else:
            times: dict[Protocol, Callable[[datetime], Any]] = {
                "json": datetime.timestamp,
                "query": datetime.isoformat,
                "cbor": _same,
            }
            shown = rendered(shape, value, times[self.protocol])
        if self.protocol == "query":
            return self._response(to_xml(self.operation, self._namespace, shown, self.request_id))
        if self.protocol == "cbor":
            return self._response(cbor2.dumps(shown, datetime_as_timestamp=True))
        return self._response(json.dumps(shown, allow_nan=False).encode())

    def _response(self, body: bytes, status: int = 200) -> Response:
        kinds = {"json": "application/x-amz-json-1.1", "query": "text/xml", "cbor": "application/cbor"}
        headers = {"x-amzn-RequestId": self.request_id, "Cache-Control": "no-store"}
        if self.protocol == "cbor":
            headers["smithy-protocol"] = "rpc-v2-cbor"
        return Response(body, status, headers, kinds[self.protocol])


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of an operation.

    Args:
        wire: how the client talks.
        request: as the operation's input has it.
        output: the shape of what it answers; None is nothing.
    """

    wire: Wire
    request: dict[str, Any]
    output: Any


def wire_of(path: str, headers: Mapping[str, str], body: bytes, request_id: str) -> Wire:
    """How a client talks, and what it asks for.

    Args:
        path: of the request.
        headers: of the request.
        body: likewise.
        request_id: of the response.
    """
    protocol: Protocol = "json"
    prefix, _, operation = headers.get("x-amz-target", "").rpartition(".")
    service = _TARGETS.get(prefix, "")
    if found := _CBOR_PATH.fullmatch(path):
        protocol, operation = "cbor", found[2]
        service = _TARGETS.get(found[1], "")
    elif headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        form, protocol = _form(body), "query"
        operation, service = form.get("Action", ""), _VERSIONS.get(form.get("Version", ""), "")
    return Wire(protocol=protocol, service=service, operation=operation, request_id=request_id)


def call_of(wire: Wire, body: bytes) -> Call:
    """The call of a request whose signature is right.

    Raises:
        ServiceError: there is no such operation, or its input's shape does not allow the request.
    """
    if wire.operation not in model(wire.service).operation_names:
        raise ServiceError("UnknownOperationException", f"{wire.service} has no operation {wire.operation!r:.100}")
    operation = model(wire.service).operation_model(wire.operation)
    given = _decoded(wire, operation.input_shape, body)
    request = {} if operation.input_shape is None else checked(operation.input_shape, given)
    return Call(wire=wire, request=request, output=operation.output_shape)


def _decoded(wire: Wire, shape: Any, body: bytes) -> Any:
    if wire.protocol == "query":
        return {} if shape is None else from_form(shape, _form(body))
    try:
        if wire.protocol == "cbor":
            return cbor2.loads(body) if body else {}
        return json.loads(body) if body.strip() else {}
    except (ValueError, EOFError, RecursionError, cbor2.CBORDecodeError) as error:
        raise ServiceError("SerializationException", f"the request's body cannot be read: {error}") from error


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


def _same(value: datetime) -> datetime:
    return value
