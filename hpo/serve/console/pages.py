"""Routes of the console: one HTML page, its scripts and its styles, which a browser asks for anew each time."""

from __future__ import annotations

from collections.abc import MutableMapping
from os import PathLike, stat_result
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from hpo.report import colours
from hpo.serve.service import Service

STATIC = Path(__file__).with_name("static")


class _Files(StaticFiles):
    """Files that a browser keeps, and asks whether they have changed: a new Warmband is seen at the next load."""

    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: stat_result,
        scope: MutableMapping[str, Any],
        status_code: int = 200,
    ) -> Response:
        """See Starlette's."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        return response


def routes(service: Service) -> list[BaseRoute]:
    """The console's routes.

    Args:
        service: of the server.

    Returns:
        The page at `/` and its files under `/static`; both are public, as all data come from `/api`.
    """
    return [Route("/", _page), Route("/static/colours.css", _colours), Mount("/static", _Files(directory=STATIC))]


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})


async def _colours(request: Request) -> Response:
    return Response(colours(), headers={"Cache-Control": "no-cache"}, media_type="text/css")
