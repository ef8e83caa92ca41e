"""Sessions of browsers: a signed cookie that names a token's digest, so that a restart of the server ends none.

A logout does: a folder holds the ids of the sessions that it has ended, until their cookies would have been over.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from pathlib import Path

from hpo.serve.security.expiring import Expiring
from hpo.serve.security.secret_file import write_secret
from hpo.serve.security.tokens import Token, Tokens
from trainers.errors import ConfigurationError

COOKIE = "warmband"
LASTS = 7 * 86400
"""Seconds."""


class Sessions:
    """Sessions, which are nowhere but in their browsers; those that were ended are in a folder.

    Args:
        tokens: a session ends with its token.
        file: the key that cookies are signed with; made where it is missing. The folder is beside it.

    Raises:
        ConfigurationError: the key cannot be read or written.
    """

    def __init__(self, tokens: Tokens, file: Path) -> None:
        self._tokens = tokens
        self._key = _key(file)
        self._ended = Expiring(file.with_name("ended-sessions"))

    def begin(self, token: Token, now: float | None = None) -> str:
        """The cookie of a new session."""
        until = int((time.time() if now is None else now) + LASTS)
        body = f"{token.digest}.{until}.{secrets.token_hex(8)}"
        return f"{body}.{self._sign(body)}"

    def find(self, cookie: str, now: float | None = None) -> Token | None:
        """The token of a session; None where it is over, or the cookie is not ours."""
        if (parts := self._parts(cookie)) is None:
            return None
        digest, until, id = parts
        if until < (time.time() if now is None else now) or self._ended.has(id):
            return None
        return self._tokens.of_digest(digest)

    def end(self, cookie: str) -> None:
        """Ends a session, for all processes of the server and for good.

        Raises:
            ConfigurationError: that cannot be written.
        """
        if (parts := self._parts(cookie)) is not None:
            _, until, id = parts
            self._ended.put(id, "", until)

    def _parts(self, cookie: str) -> tuple[str, int, str] | None:
        """The token's digest, the end and the id of a session; None where the cookie is not ours."""
        body, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self._sign(body).encode()):
            return None
        digest, until, id = body.split(".")
        return digest, int(until), id

    def csrf(self, cookie: str) -> str:
        """What acts of a session have to carry in a header, which no page of another origin can know."""
        return self._sign(f"csrf {cookie}")

    def is_csrf(self, cookie: str, given: str) -> bool:
        """Whether what an act carries is that."""
        return hmac.compare_digest(given.encode(errors="replace"), self.csrf(cookie).encode())

    def _sign(self, text: str) -> str:
        made = hmac.new(self._key, text.encode(errors="replace"), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")


def _key(file: Path) -> bytes:
    if not file.exists():
        write_secret(file, secrets.token_hex(32))
    try:
        key = bytes.fromhex(file.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the key of sessions {file} cannot be read: {error}; remove it") from error
    if len(key) < 32:
        raise ConfigurationError(f"the key of sessions {file} has {len(key)} bytes, fewer than 32; remove it")
    return key
