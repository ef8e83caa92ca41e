"""Tokens: a file that holds their digests, names and rights, never themselves."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpo.serve.security.secret_file import Rights, SecretFile
from trainers.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token of the file.

    Args:
        name: whose it is; it stands beside acts in the record.
        rights: what it allows.
        digest: SHA-256 of the token, in hexadecimal digits. It is long and random: no slower digest is needed.
        created_at: unix seconds.
    """

    name: str
    rights: Rights
    digest: str
    created_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who asks for something.

    Args:
        name: of the token.
        rights: of the token.
        address: of the client.
        browser: whether it came by a session's cookie.
        digest: the token's.
        cookie: of that session.
    """

    name: str
    rights: Rights
    address: str
    browser: bool = False
    digest: str = ""
    cookie: str = field(default="", repr=False)

    @property
    def may_act(self) -> bool:
        """Whether it may change jobs."""
        return self.rights == "act"


class Tokens:
    """The tokens of a file, read again once it has changed.

    Args:
        file: it need not be there yet.

    Raises:
        ConfigurationError: it cannot be read, or is no file of tokens.
    """

    def __init__(self, file: Path) -> None:
        self._file = SecretFile(file, "token", _token, _row)

    @property
    def file(self) -> Path:
        """Where they are."""
        return self._file.path

    def __len__(self) -> int:
        return len(self._file.all())

    def __iter__(self) -> Iterator[Token]:
        return iter(self._file.all())

    def find(self, token: str) -> Token | None:
        """The token of a file that a client has shown; None where there is none like it."""
        return self.of_digest(digest(token))

    def of_digest(self, digest: str) -> Token | None:
        """The token with a digest; None where it is gone."""
        return next((one for one in self if hmac.compare_digest(one.digest, digest)), None)

    def add(self, name: str, rights: Rights) -> str:
        """Makes a token and puts its digest into the file, which nobody but its owner can read.

        Returns:
            The token itself, which is kept nowhere.

        Raises:
            ConfigurationError: the name is wrong or taken, or the file cannot be written.
        """
        made = f"wb_{secrets.token_urlsafe(32)}"
        self._file.add(Token(name=name, rights=rights, digest=digest(made), created_at=time.time()))
        return made

    def remove(self, name: str) -> None:
        """Takes a token out of the file; its sessions end with it.

        Raises:
            ConfigurationError: there is none of that name.
        """
        self._file.remove(name)


def digest(token: str) -> str:
    """The digest of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _row(token: Token) -> dict[str, Any]:
    return {"name": token.name, "rights": token.rights, "sha256": token.digest, "created_at": token.created_at}


def _token(row: Any) -> Token:
    made = Token(
        name=str(row["name"]),
        rights=row["rights"],
        digest=str(row["sha256"]).lower(),
        created_at=float(row.get("created_at", 0.0)),
    )
    if not re.fullmatch("[0-9a-f]{64}", made.digest):
        raise ConfigurationError(f"sha256 of token {made.name!r} is not 64 hexadecimal digits")
    return made
