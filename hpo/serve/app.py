"""`make_app`: the server's one app of its parts: the REST API, SageMaker's protocol and the console."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from hpo.serve.errors import RefusedError
from hpo.serve.rest import rest_app
from hpo.serve.security import Guard, login_routes
from hpo.serve.service import Service
from hpo.serve.settings import ServeSettings

_log = logging.getLogger("warmband.serve")


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
        yield
        service.end()
        service.close()

    routes: list[BaseRoute] = [
        Route("/healthz", _healthy),
        *login_routes(service.tokens, service.sessions, lambda address: guard.wrong(address)),
        Mount("/api", rest_app()),
        *_plugged("hpo.serve.aws", service),
        *_plugged("hpo.serve.console", service),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={RefusedError: _refused, Exception: _failed})
    guard = Guard(app, settings, service.tokens, service.sessions, {"service": service})
    return guard


def _plugged(package: str, service: Service) -> list[BaseRoute]:
    """The routes of a part that may be missing, by its `routes(service)`."""
    if find_spec(package) is None:
        return []
    found: list[BaseRoute] = import_module(package).routes(service)
    return found


async def _healthy(request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error.response()


async def _failed(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return RefusedError(500, "Internal", "the server has a fault; its log says which").response()
