"""The API's app: routes, errors in one form, and its OpenAPI document."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hpo.serve.errors import RefusedError, as_refusal
from hpo.serve.rest import acts, endpoints, reading
from trainers.errors import WarmbandError


def rest_app() -> FastAPI:
    """The app under /api; `request.state.service` and `who` are what the guard before it put there."""
    app = FastAPI(
        title="Warmband",
        description="Tuning jobs of a record: documents, events and acts. Tokens go as `Authorization: Bearer TOKEN`.",
        version="1",
        openapi_url="/openapi.json",
        docs_url=None,  # FastAPI's pages load scripts from a network.
        redoc_url=None,
    )
    app.include_router(reading.router)
    app.include_router(acts.router)
    app.include_router(endpoints.router)

    @app.exception_handler(WarmbandError)
    async def ours(request: Request, error: WarmbandError) -> Response:
        return as_refusal(error).response()

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:])
        return RefusedError(400, "Invalid", f"{field}: {first['msg']}", field=field).response()

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        kinds = {404: "NotFound", 405: "NotAllowed"}
        refusal = RefusedError(error.status_code, kinds.get(error.status_code, "Invalid"), str(error.detail))
        response = refusal.response()
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return RefusedError(500, "Internal", "the server has a fault; its log says which").response()

    return app
