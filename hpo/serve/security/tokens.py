"""Tokens: a file that holds their digests, names and rights, never themselves."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from trainers.errors import ConfigurationError

Rights = Literal["look", "act"]
"""Who may act may look as well."""

_LOOK_EVERY = 1.0
"""Seconds between two looks at whether the file has changed."""

_NAME = re.compile(r"[\w.@-]{1,64}")


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
    """

    name: str
    rights: Rights
    address: str
    browser: bool = False

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
        self.file = file
        self._looked, self._stamp = 0.0, (-1, -1)
        self._tokens: dict[str, Token] = {}
        self._read()

    def __len__(self) -> int:
        self._refresh()
        return len(self._tokens)

    def __iter__(self) -> Any:
        self._refresh()
        return iter(self._tokens.values())

    def find(self, token: str) -> Token | None:
        """The token of a file that a client has shown; None where there is none like it."""
        return self.of_digest(digest(token))

    def of_digest(self, digest: str) -> Token | None:
        """The token with a digest; None where it is gone."""
        self._refresh()
        found = self._tokens.get(digest)
        return found if found is not None and hmac.compare_digest(found.digest, digest) else None

    def add(self, name: str, rights: Rights) -> str:
        """Makes a token and puts its digest into the file, which nobody but its owner can read.

        Returns:
            The token itself, which is kept nowhere.

        Raises:
            ConfigurationError: the name is wrong or taken, or the file cannot be written.
        """
        self._read()
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"a token's name is {name!r}; give 1 to 64 letters, digits and any of . _ @ -")
        if name in (token.name for token in self._tokens.values()):
            raise ConfigurationError(f"{self.file} has a token named {name!r} already; give another name")
        made = f"wb_{secrets.token_urlsafe(32)}"
        token = Token(name=name, rights=rights, digest=digest(made), created_at=time.time())
        self._write([*self._tokens.values(), token])
        return made

    def remove(self, name: str) -> None:
        """Takes a token out of the file; its sessions end with it.

        Raises:
            ConfigurationError: there is none of that name.
        """
        self._read()
        kept = [token for token in self._tokens.values() if token.name != name]
        if len(kept) == len(self._tokens):
            names = ", ".join(token.name for token in kept) or "none"
            raise ConfigurationError(f"{self.file} has no token named {name!r}; it has {names}")
        self._write(kept)

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._looked > _LOOK_EVERY:
            self._looked = now
            if _stamp(self.file) != self._stamp:
                self._read()

    def _read(self) -> None:
        self._stamp = _stamp(self.file)
        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._tokens = {}
            return
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the tokens {self.file} cannot be read: {error}; name another file") from error
        self._tokens = {token.digest: token for token in _parsed(text, self.file)}

    def _write(self, tokens: list[Token]) -> None:
        rows = [
            {"name": each.name, "rights": each.rights, "sha256": each.digest, "created_at": each.created_at}
            for each in tokens
        ]
        write_secret(self.file, json.dumps({"tokens": rows}, indent=2) + "\n")
        self._read()


def digest(token: str) -> str:
    """The digest of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def write_secret(file: Path, text: str) -> None:
    """Writes a file that nobody but its owner may read, whole or not at all.

    Raises:
        ConfigurationError: it cannot be written.
    """
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
        beside.replace(file)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error}; name a file in a folder of yours") from error


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_ino


def _parsed(text: str, file: Path) -> list[Token]:
    try:
        tokens = [
            Token(
                name=str(row["name"]),
                rights=row["rights"],
                digest=str(row["sha256"]).lower(),
                created_at=float(row.get("created_at", 0.0)),
            )
            for row in json.loads(text)["tokens"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{file} is no file of tokens: {type(error).__name__} {error}; `hpo serve token NAME` adds a token to one"
        ) from error
    for token in tokens:
        if token.rights not in get_args(Rights):
            raise ConfigurationError(f"{file}: token {token.name!r} has the rights {token.rights!r}; give look or act")
        if not re.fullmatch("[0-9a-f]{64}", token.digest):
            raise ConfigurationError(f"{file}: sha256 of token {token.name!r} is not 64 hexadecimal digits")
    return tokens
