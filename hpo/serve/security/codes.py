"""Codes of links by which a browser logs in: each is good once and for a few minutes, unlike a token."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from hpo.serve.security.expiring import Expiring
from hpo.serve.security.tokens import Token, Tokens, digest

LASTS = 600.0
"""Seconds."""


class Codes:
    """Codes, of which a folder holds the digests.

    Args:
        tokens: a code ends with its token.
        folder: it need not be there yet.
    """

    def __init__(self, tokens: Tokens, folder: Path) -> None:
        self._tokens = tokens
        self._codes = Expiring(folder)

    def begin(self, token: Token, now: float | None = None) -> str:
        """A new code in the place of a token.

        Raises:
            ConfigurationError: it cannot be written.
        """
        code = secrets.token_urlsafe(32)
        self._codes.put(digest(code), token.digest, (time.time() if now is None else now) + LASTS)
        return code

    def take(self, code: str, now: float | None = None) -> Token | None:
        """The token in whose place a code is, which is not good any more; None where it is none or was taken."""
        found = self._codes.take(digest(code), now)
        return None if found is None else self._tokens.of_digest(found)
