"""Secret files: a list of what users were given, each by a name and with rights, read again once it has changed."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from trainers.errors import ConfigurationError

Rights: TypeAlias = Literal["look", "act"]
"""Who may act may look as well."""

_NAME = re.compile(r"[\w.@-]{1,64}")


class Named(Protocol):
    """What a file has several of."""

    @property
    def name(self) -> str:
        """Whose it is; it stands beside acts in the record."""

    @property
    def rights(self) -> Rights:
        """What it allows."""


T = TypeVar("T", bound=Named)


class SecretFile(Generic[T]):
    """What a file has, for threads to share; processes change it one after the other.

    Args:
        file: it need not be there yet.
        kind: what it has, in one word; in the plural it is the file's only key.
        read: makes one of its row, and raises KeyError, TypeError or ValueError where that is none.
        row: makes a row of one.

    Raises:
        ConfigurationError: it cannot be read, or has something else.
    """

    def __init__(self, file: Path, kind: str, read: Callable[[Any], T], row: Callable[[T], Mapping[str, Any]]) -> None:
        self.path = file
        self._kind, self._one, self._row = kind, read, row
        self._reading = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._all: tuple[T, ...] = ()
        self.all()

    def all(self) -> tuple[T, ...]:
        """What the file has now.

        Raises:
            ConfigurationError: somebody has broken it. Nothing of before is valid any more: one may have been removed.
        """
        with self._reading:
            stamp = _stamp(self.path)
            if stamp != self._stamp:
                self._all = self._read()
                self._stamp = stamp
            return self._all

    def _check_new(self, name: str) -> None:
        """Raises ConfigurationError where a name is wrong or taken."""
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"a {self._kind}'s name is {name!r}; give 1 to 64 letters, digits and any of . _ @ -"
            )
        if name in (one.name for one in self.all()):
            raise ConfigurationError(f"{self.path} has a {self._kind} named {name!r} already; give another name")

    def add(self, one: T) -> None:
        """Puts one into the file, which nobody but its owner can read.

        Raises:
            ConfigurationError: its name is wrong or taken, or the file cannot be written.
        """
        with self._alone():
            self._check_new(one.name)
            self._write((*self.all(), one))

    def remove(self, name: str) -> None:
        """Takes one out of the file.

        Raises:
            ConfigurationError: there is none of that name.
        """
        with self._alone():
            kept = tuple(one for one in self.all() if one.name != name)
            if len(kept) == len(self.all()):
                names = ", ".join(one.name for one in kept) or "none"
                raise ConfigurationError(f"{self.path} has no {self._kind} named {name!r}; it has {names}")
            self._write(kept)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(lock, os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError as error:
            raise _not_written(self.path, error) from error
        with os.fdopen(handle, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # Held for a read and a write of a small file.
            yield

    def _write(self, all: tuple[T, ...]) -> None:
        rows = [dict(self._row(one)) for one in all]
        write_secret(self.path, json.dumps({f"{self._kind}s": rows}, indent=2) + "\n")

    def _read(self) -> tuple[T, ...]:
        kind = self._kind
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the {kind}s {self.path} cannot be read: {error}; name another file") from error
        try:
            found = tuple(self._one(row) for row in json.loads(text)[f"{kind}s"])
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.path}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ConfigurationError(
                f"{self.path} is no file of {kind}s: {type(error).__name__} {error}; "
                f"`hpo serve {kind} NAME` adds a {kind} to one"
            ) from error
        for one in found:
            if one.rights not in get_args(Rights):
                raise ConfigurationError(
                    f"{self.path}: {kind} {one.name!r} has the rights {one.rights!r}; give look or act"
                )
        return found


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
        raise _not_written(file, error) from error


def _not_written(file: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{file} cannot be written: {error}; name a file in a folder of yours")


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_ino
