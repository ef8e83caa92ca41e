"""Login of browsers: a token in a form, or the code in the link that `hpo serve` prints, becomes a session's cookie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from hpo.serve.errors import RefusedError, json_response
from hpo.serve.security.codes import Codes
from hpo.serve.security.guard import check_origin, cookie_of
from hpo.serve.security.sessions import COOKIE, LASTS, Sessions
from hpo.serve.security.tokens import Tokens

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Warmband: log in</title>
<link rel="stylesheet" href="/static/colours.css"><link rel="stylesheet" href="/static/console.css"></head>
<body>
<main>
<h1>Warmband</h1>
<form method="post" action="/login">
<p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button></p>
</form>
<p role="alert">{message}</p>
<p>The first start of <code>hpo serve</code> prints a token; <code>hpo serve token NAME</code> makes more.</p>
</main>
</body>
</html>
"""


def login_routes(tokens: Tokens, codes: Codes, sessions: Sessions, wrong: Callable[[str], None]) -> list[Route]:
    """The routes of login and logout, and of who one is.

    Args:
        tokens: that are known.
        codes: of links, which are known likewise.
        sessions: that are begun.
        wrong: told the address of each wrong token or code; it raises where there were too many.
    """

    async def login(request: Request) -> Response:
        if request.method == "POST":
            check_origin(request.headers)
            token = (parse_qs((await request.body()).decode(errors="replace")).get("token") or [""])[0]
            found, problem = tokens.find(token.strip()), "This token is not known, or was removed."
        else:
            code = request.query_params.get("code", "")
            if not code or request.method == "HEAD":
                return HTMLResponse(_PAGE.format(message=""), headers={"Cache-Control": "no-store"})
            check_origin(request.headers)  # Else another site could log a browser in under a token of its own.
            found, problem = codes.take(code), "This link was used, or is older than 10 minutes. Give the token itself."
        if found is None:
            wrong(_address(request))
            return HTMLResponse(_PAGE.format(message=problem), 401, {"Cache-Control": "no-store"})
        # Not by Location alone: a browser sends a strict cookie with what a page of its own site leads to.
        response: Response = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        _set(response, sessions.begin(found), request)
        return response

    async def logout(request: Request) -> Response:
        check_origin(request.headers)
        sessions.end(cookie_of(request.headers))
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    return [Route("/login", login, methods=["GET", "POST"]), Route("/logout", logout, methods=["POST"])]


def session(request: Request, sessions: Sessions) -> Response:
    """Who one is, what one may do, and what acts of a browser have to carry."""
    who = request.state.who
    if who is None:
        raise RefusedError(401, "Unauthenticated", "no token")
    csrf = {"csrf": sessions.csrf(cookie_of(request.headers))} if who.browser else {}
    return json_response({"name": who.name, "rights": who.rights, **csrf})


def _set(response: Response, cookie: str, request: Request) -> None:
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    options: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "strict", "secure": secure}
    response.set_cookie(COOKIE, cookie, max_age=LASTS, **options)


def _address(request: Request) -> str:
    return request.client.host if request.client else "unknown"
