"""`make_app`: the server's one app of its parts: the REST API, SageMaker's protocol and the console."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from hpo.serve.console import routes
from hpo.serve.errors import RefusedError
from hpo.serve.rest import rest_app
from hpo.serve.security import Guard, login_routes
from hpo.serve.service import Service
from hpo.serve.settings import ServeSettings
from trainers.errors import WarmbandError

_log = logging.getLogger("warmband.serve")
_LOOK_SECONDS = 60.0


def make_app(settings: ServeSettings, service: Service | None = None) -> Guard:
    """The app, for any ASGI server.

    Args:
        settings: of the server.
        service: what its parts share; None makes it of the settings.

    Raises:
        ConfigurationError: tokens, keys or the record's URL are wrong.
    """
    service = Service(settings) if service is None else service

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        left = asyncio.create_task(_take_up(service)) if settings.aws_keys is not None else None
        yield
        if left is not None:
            left.cancel()
        service.end()
        service.close()

    all_routes: list[BaseRoute] = [
        Route("/healthz", _healthy),
        *login_routes(service.tokens, service.codes, service.sessions, lambda address: guard.wrong(address)),
        Mount("/api", rest_app()),
        *_aws(service),
        *routes(service),
    ]
    app = Starlette(routes=all_routes, lifespan=lifespan, exception_handlers=_ANSWERS)
    guard = Guard(app, settings, service.tokens, service.sessions, {"service": service})
    return guard


def _aws(service: Service) -> list[BaseRoute]:
    """Return the routes of SageMaker's protocol; without a file of keys, one that says which option is missing."""
    settings = service.settings
    if settings.aws_keys is None:

        async def refused(request: Request) -> Response:
            from hpo.serve import aws  # imports botocore, which a server without keys does not need

            return await aws.refused_without_keys(request)

        return [Route("/", refused, methods=["POST"])]
    from hpo.serve import aws

    keys = aws.read_keys(settings.aws_keys)
    tables = aws.read_tables(settings.aws_tables, allow_code=settings.allow_code, places=settings.places)
    door = aws.AwsDoor(service.open, settings.store, keys, tables, service.actors.run, service.creators.run)

    async def call(request: Request) -> Response:
        answer: Response = await door(request)
        return answer

    return [Route("/", call, methods=["POST"]), Route("/{path:path}", call, methods=["POST"])]


async def _take_up(service: Service) -> None:
    """Starts the jobs that were written into the record and not started, as where the machine went down between."""
    from hpo.serve import aws

    while True:
        try:
            await service.creators.run(lambda: aws.start_left_behind(service.open(), service.settings.store))
        except (WarmbandError, RefusedError) as error:
            _log.warning("jobs that were left behind may not have been started: %s", error)
        await asyncio.sleep(_LOOK_SECONDS)


async def _gone(request: Request, error: Exception) -> Response:
    return RefusedError(400, "Invalid", "the request's body ended before its end").response()


async def _healthy(request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error.response()


async def _failed(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return RefusedError(500, "Internal", "the server has a fault; its log says which").response()


_ANSWERS = {RefusedError: _refused, ClientDisconnect: _gone, Exception: _failed}
"""What is answered to errors."""
