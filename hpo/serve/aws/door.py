"""`AwsDoor`: the door of the service's protocol: signature, request, act, response."""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hpo.record import Store, acting
from hpo.serve.aws.errors import ServiceError, as_service_error
from hpo.serve.aws.keys import AccessKey, Keys
from hpo.serve.aws.operations import OPERATIONS, Caller
from hpo.serve.aws.signature import Signed, Signer, signer_of
from hpo.serve.aws.wire import Call, Wire, call_of, wire_of
from hpo.serve.errors import RefusedError
from hpo.serve.security import Rates
from trainers.errors import ConfigurationError, WarmbandError

_log = logging.getLogger("warmband.serve")

CALLS_A_SECOND = 50.0
"""Calls of one key; four times as many may come at once."""

CREATIONS_OF_ONE_KEY = 4
"""Jobs that one key may create at the same time; a quarter of what the server creates and lets wait."""

DOOR = "SageMaker"
"""The door by which the record says that a person came."""

_AGAIN = re.compile(r"\battempt=(?:[2-9]|\d\d)")
"""In the header of the service's own clients that counts how often a request was sent."""


class AwsDoor:
    """The door of the service's protocol.

    Args:
        open: the record, for threads.
        store_url: its URL, for jobs that are created; None is the default one.
        keys: by which requests are signed.
        tables: of images and instance types.
        run: calls in a thread.
        run_creation: likewise, where a job is created: others do not wait behind that, nor does it end with their time.
        now: the time, in UTC.
        rates: of the calls of each key.
    """

    def __init__(
        self,
        open: Callable[[], Store],
        store_url: str | None,
        keys: Keys,
        tables: Any,
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        run_creation: Callable[[Callable[[], Any]], Awaitable[Any]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rates: Rates | None = None,
    ) -> None:
        self._open, self._store_url, self._keys, self._tables = open, store_url, keys, tables
        self._run, self._run_creation, self._now = run, run_creation, now
        self._rates = Rates(CALLS_A_SECOND, 4 * CALLS_A_SECOND) if rates is None else rates
        self._creations: dict[str, threading.BoundedSemaphore] = {}
        """By the ids of keys, how many more jobs each may create now."""

    async def __call__(self, request: Request) -> Response:
        """The response to a request, whatever it asks for."""
        body = await request.body()
        wire = wire_of(request.url.path, request.headers, body, str(uuid.uuid4()))
        try:
            if not wire.service:
                raise ServiceError("UnknownOperationException", "the request names no service that is served here", 404)
            signer = self._signer(request, body, wire)
            if wait := self._rates.wait(signer.key.id):
                raise ServiceError("ThrottlingException", f"Rate exceeded: wait {wait:.1f} s")
            operation = OPERATIONS.get((wire.service, wire.operation))
            again = _AGAIN.search(request.headers.get("amz-sdk-request", "")) is not None
            call = partial(self._serve, wire, signer, body, again)
            creates = operation is not None and operation.creates
            response: Response = await (self._create(signer.key, call) if creates else self._run(call))
        except (ServiceError, WarmbandError) as error:
            told = as_service_error(error)
            _log.info("%s refused: %s %s", wire.operation[:100], told.code, told)
            return wire.refusal(told)
        except Exception:
            _log.exception("%s failed", wire.operation[:100])
            return wire.refusal(ServiceError("InternalFailure", "the server has a fault; its log says which", 500))
        return response

    async def _create(self, key: AccessKey, call: Callable[[], Response]) -> Response:
        """Have a thread create a job, which goes on where its client does not wait.

        Raises:
            ServiceError: the key creates too many already.
        """
        left = self._creations.setdefault(key.id, threading.BoundedSemaphore(CREATIONS_OF_ONE_KEY))
        if not left.acquire(blocking=False):
            told = f"the key {key.name!r} creates {CREATIONS_OF_ONE_KEY} jobs already; wait for one of them"
            raise ServiceError("ThrottlingException", told)

        def create() -> Response:
            try:
                return call()
            finally:
                left.release()

        try:
            response: Response = await self._run_creation(create)
        except RefusedError as error:
            if error.kind == "Busy":  # It was not begun.
                left.release()
            raise
        return response

    def _signer(self, request: Request, body: bytes, wire: Wire) -> Signer:
        try:
            return signer_of(_signed(request, body), self._keys, wire.signing_name, self._now())
        except ConfigurationError as error:  # Somebody has broken the file of keys.
            _log.error("%s", error)
            told = "no signature can be checked; the server's log says why"
            raise ServiceError("ServiceUnavailable", told, 503) from error

    def _serve(self, wire: Wire, signer: Signer, body: bytes, again: bool) -> Response:
        call = call_of(wire, body)
        return wire.result(call.output, self._perform(call, signer, again))

    def _perform(self, call: Call, signer: Signer, again: bool) -> dict[str, Any]:
        name, key = call.wire.operation, signer.key
        operation = OPERATIONS.get((call.wire.service, name))
        if operation is None:
            raise ServiceError("UnknownOperationException", f"{name} is not served here")
        if operation.acts and key.rights != "act":
            raise ServiceError(
                "AccessDeniedException", f"the key {key.name!r} may look, and {name} acts; use one that may act", 403
            )
        with acting(by=key.name, door=DOOR):
            caller = Caller(
                store=self._open(),
                store_url=self._store_url,
                tables=self._tables,
                key=key,
                region=signer.region,
                again=again,
            )
            answer = operation.call(caller, call.request)
        if operation.acts:
            _log.info("%s called %s", key.name, name)
        return answer


async def refused_without_keys(request: Request) -> Response:
    """Return the refusal of a client's call by a server that has no access keys, in the client's own protocol."""
    body = await request.body()
    wire = wire_of(request.url.path, request.headers, body, str(uuid.uuid4()))
    if not wire.service:
        raise HTTPException(405)
    told = (
        "this server answers no client of SageMaker's, since it was started without --aws-keys; make a key: `hpo serve "
        "key NAME --aws-keys keys.json`, then start `hpo serve --aws-keys keys.json`"
    )
    return wire.refusal(ServiceError("AccessDeniedException", told, 403))


def _signed(request: Request, body: bytes) -> Signed:
    headers = {name: request.headers.getlist(name) for name in request.headers}
    path = request.scope.get("raw_path", b"").decode("latin-1") or request.url.path
    return Signed(
        method=request.method, path=path.partition("?")[0], query=request.url.query, headers=headers, body=body
    )
