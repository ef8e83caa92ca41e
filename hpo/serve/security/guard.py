"""Guard: what every request passes before it is served: host, rate, token or session, CSRF, size and time."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections.abc import Collection
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hpo.serve.errors import RefusedError
from hpo.serve.security.rates import Rates
from hpo.serve.security.sessions import COOKIE, Sessions
from hpo.serve.security.tokens import Tokens, Who
from hpo.serve.settings import ServeSettings
from trainers.errors import ConfigurationError

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
CSRF = "x-csrf-token"
SAFE = ("GET", "HEAD", "OPTIONS")
ACTS_A_SECOND, WRONG_A_SECOND = 5.0, 0.5
"""Acts of one token, and wrong tokens of one address; several times as many may come at once."""

BODY_BYTES_A_SECOND, BODY_BYTES_AT_ONCE = 4 * 1024 * 1024, 64 * 1024 * 1024
"""Bytes of the bodies of one token's requests, or of one address's without one."""

UNREAD_BYTES, UNREAD_SECONDS = 64 * 1024 * 1024, 10.0
"""The most that the server reads and discards of a refused body. A connection that ends earlier hides the answer."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_log = logging.getLogger("warmband.serve")


def needs_act(method: str) -> bool:
    """Whether a request of this method, in capitals, needs a token that may act; others need one that may look."""
    return method not in SAFE


class Guard:
    """The outermost part of the app. It tells the parts within, in `scope["state"]`, `who` asks; None under no token.

    Paths under /api need a token or a session: of safe methods one that may look, else one that may act. Others are
    public, as files of the console are; the door of SageMaker's protocol checks signatures itself.

    Args:
        app: what is guarded.
        settings: of the server.
        tokens: that are known.
        sessions: of browsers.
        state: what else the parts within find in `scope["state"]`.
    """

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, tokens: Tokens, sessions: Sessions, state: dict[str, Any]
    ) -> None:
        self._app, self._settings = app, settings
        self._tokens, self._sessions, self._state = tokens, sessions, state
        self._names = {"localhost", settings.host.lower(), *(name.lower() for name in settings.names)}
        self._rates = Rates(settings.rate, 4 * settings.rate)
        self._acts = Rates(ACTS_A_SECOND, 20 * ACTS_A_SECOND)
        self._wrong = Rates(WRONG_A_SECOND, 20)
        self._bodies = Rates(BODY_BYTES_A_SECOND, BODY_BYTES_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False
        body = _Body(receive, self._settings, self._bodies)

        async def hardened(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            who = self._admit(scope)
            body.payer = _payer(who, _address(scope))
            scope["state"] = {**scope.get("state", {}), **self._state, "who": who}
            await self._app(scope, body.receive, hardened)
        except RefusedError as refusal:
            if begun:
                raise
            response = refusal.response()
            response.headers["Connection"] = "close"

            async def last(message: Message) -> None:
                if message["type"] == "http.response.body":
                    await hardened({**message, "more_body": True})
                    await body.throw_away(Headers(scope=scope))
                    message = {"type": "http.response.body", "body": b"", "more_body": False}
                await hardened(message)

            await response(scope, receive, last)

    def _admit(self, scope: Scope) -> Who | None:
        headers = Headers(scope=scope)
        address = _address(scope)
        _check_host(headers.getlist("host"), self._names)
        _check_site(scope, headers)
        _check_length(headers, self._settings.most_bytes)
        try:
            who = self._who(headers, address)
        except ConfigurationError as error:  # Somebody has broken the file of tokens.
            _log.error("%s", error)
            raise RefusedError(503, "Unavailable", "no token can be checked; the server's log says why") from error
        self._take(self._rates, _payer(who, address))
        path = scope["path"]
        _check_words(path, scope["query_string"])
        if not _is_api(path):
            return who
        if who is None:
            raise RefusedError(401, "Unauthenticated", "no token; send one as `Authorization: Bearer TOKEN`, or log in")
        if needs_act(scope["method"]):
            self._check_act(who, headers)
        return who

    def _who(self, headers: Headers, address: str) -> Who | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            found = self._tokens.find(token.strip())
            if found is None:
                self.wrong(address)
                raise RefusedError(401, "Unauthenticated", "the token is not known, or was removed")
            return Who(name=found.name, rights=found.rights, address=address, digest=found.digest)
        if (cookie := cookie_of(headers)) and (found := self._sessions.find(cookie)) is not None:
            return Who(
                name=found.name,
                rights=found.rights,
                address=address,
                browser=True,
                digest=found.digest,
                cookie=cookie,
            )
        return None

    def wrong(self, address: str) -> None:
        """Counts a wrong token of an address.

        Raises:
            RefusedError: there were too many.
        """
        self._take(self._wrong, address)
        _log.warning("a wrong token from %s", address)

    def _check_act(self, who: Who, headers: Headers) -> None:
        if not who.may_act:
            raise RefusedError(403, "Forbidden", f"the token {who.name!r} may look, not act; use one that may act")
        self._take(self._acts, who.name)
        if who.browser:
            check_origin(headers)
            if not self._sessions.is_csrf(cookie_of(headers), headers.get(CSRF, "")):
                raise RefusedError(
                    403, "Forgery", f"no {CSRF} header, or not this session's; GET /api/session tells it"
                )

    def _take(self, rates: Rates, key: str) -> None:
        if wait := rates.wait(key):
            raise RefusedError(
                429, "TooManyRequests", f"more than {rates.rate:g} requests a second; wait {wait:.1f} s", wait=wait
            )


def cookie_of(headers: Headers) -> str:
    """The session's cookie of a request; empty where there is none."""
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(headers.get("cookie", ""))
    except CookieError:
        return ""
    return jar[COOKIE].value if COOKIE in jar else ""


def check_origin(headers: Headers) -> None:
    """Refuses what a page of another origin sends.

    Raises:
        RefusedError: it is such.
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") or (
        origin is not None and _network_part(origin) != host.lower()
    ):
        raise RefusedError(
            403, "Forgery", f"the request comes from a page of {origin or 'another site'}, not of {host}"
        )


def _network_part(origin: str) -> str | None:
    """Host and port of an origin; None where it is no URL."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _check_host(hosts: list[str], names: Collection[str]) -> None:
    """Refuses names that the server was not told are its own: a page of an attacker's could let one lead here.

    Raises:
        RefusedError: it is such.
    """
    host = hosts[0].lower() if len(hosts) == 1 else ""
    name = re.sub(r":\d+$", "", host)
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        if name not in names:
            raise RefusedError(
                421, "WrongHost", f"the host {host!r} is not this server's; name it with hpo serve --name {name or 'X'}"
            ) from None


def _check_site(scope: Scope, headers: Headers) -> None:
    """Refuses what a page of another site sends, but that a person follows a link to a page of the console.

    Raises:
        RefusedError: it is such.
    """
    if headers.get("sec-fetch-site") != "cross-site":
        return
    followed = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if not followed or _is_api(scope["path"]):
        raise RefusedError(403, "Forgery", "the request comes from a page of another site; open the console itself")


def _is_api(path: str) -> bool:
    return path == "/api" or path.startswith("/api/")


def _check_words(path: str, query: bytes) -> None:
    """Refuses control characters in a path, which routes do not match, and NUL in a query: PostgreSQL takes none.

    Raises:
        RefusedError: it has one.
    """
    if wrong := _CONTROL.search(path):
        raise RefusedError(400, "Invalid", f"the path has the control character {wrong[0]!r}; leave it out")
    if b"%00" in query or b"\0" in query:
        raise RefusedError(400, "Invalid", "the query has the control character '\\x00'; leave it out")


def _check_length(headers: Headers, most: int) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise RefusedError(400, "Invalid", f"Content-Length is {length!r}; give a number")
    if len(length) > 18 or int(length) > most:
        raise _too_large(most)


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, "TooLarge", f"the request's body is larger than {most:,} bytes; send less")


def _address(scope: Scope) -> str:
    address: str = (scope.get("client") or ("unknown", 0))[0]
    return address


def _payer(who: Who | None, address: str) -> str:
    """Whose permits a request takes."""
    return f"{who.name} token" if who else address


class _Body:
    """The body of a request, bounded in size, in time, and by the rate of who sends it.

    Args:
        receive: as ASGI has it.
        settings: of the server.
        rates: of bytes.
    """

    def __init__(self, receive: Receive, settings: ServeSettings, rates: Rates) -> None:
        self._receive, self._settings, self._rates = receive, settings, rates
        self.payer = ""
        """Whose permits it takes."""
        self._bytes, self._over = 0, False
        self._until = asyncio.get_running_loop().time() + settings.body_seconds

    async def receive(self) -> Message:
        if self._over:  # What comes now tells of the client's end, for which one waits as long as it takes.
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise RefusedError(
                408, "TooSlow", f"the request's body was not there within {self._settings.body_seconds:g} s"
            ) from None
        if message["type"] == "http.request":
            length = len(message.get("body", b""))
            self._bytes += length
            self._over = not message.get("more_body", False)
            if self._bytes > self._settings.most_bytes:
                raise _too_large(self._settings.most_bytes)
            if wait := self._rates.wait(self.payer, length):
                told = f"more than {self._rates.rate / 2**20:g} MiB of bodies a second; wait {wait:.1f} s"
                raise RefusedError(429, "TooManyRequests", told, wait=wait)
        return message

    async def throw_away(self, headers: Headers) -> None:
        """Reads what is left of a refused body, within bounds; a client that waits to be asked for it is not asked."""
        if self._over or headers.get("expect", "").lower() == "100-continue":
            return
        if not ("transfer-encoding" in headers or headers.get("content-length", "0") != "0"):
            return
        thrown = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(UNREAD_SECONDS):
                while thrown < UNREAD_BYTES:
                    message = await self._receive()
                    thrown += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
