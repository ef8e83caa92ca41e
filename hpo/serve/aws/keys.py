"""Access keys: a file that holds them with their secrets, by which requests are signed, and with names and rights."""

from __future__ import annotations

import json
import re
import secrets
import string
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from hpo.serve.security import Rights, write_secret
from trainers.errors import ConfigurationError

_NAME = re.compile(r"[\w.@-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """One key of the file.

    Args:
        name: whose it is; it stands beside acts in the record.
        id: the access key's id, which requests name.
        secret: what they are signed with.
        rights: what it allows.
        created_at: unix seconds.
    """

    name: str
    id: str
    secret: str
    rights: Rights = "act"
    created_at: float = 0.0


class Keys:
    """The keys of a file, read again once it has changed; safe to share between threads.

    Args:
        file: it need not be there yet.

    Raises:
        ConfigurationError: it cannot be read, or is no file of keys.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._reading = threading.Lock()
        self._stamp, self._keys = _read(file)

    def find(self, id: str) -> AccessKey | None:
        """The key of an id; None where there is none."""
        with self._reading:
            if _stamp(self.file) != self._stamp:
                self._stamp, self._keys = _read(self.file)
            return self._keys.get(id)

    def add(self, name: str, rights: Rights) -> AccessKey:
        """Makes a key and puts it into the file, which nobody but its owner can read.

        Raises:
            ConfigurationError: the name is wrong or taken, or the file cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"a key's name is {name!r}; give 1 to 64 letters, digits and any of . _ @ -")
        _, keys = _read(self.file)
        if name in (key.name for key in keys.values()):
            raise ConfigurationError(f"{self.file} has a key named {name!r} already; give another name")
        letters = string.ascii_uppercase + "234567"
        id = "WBAK" + "".join(secrets.choice(letters) for _ in range(16))
        key = AccessKey(name=name, id=id, secret=secrets.token_urlsafe(30), rights=rights, created_at=time.time())
        self._write([*keys.values(), key])
        return key

    def remove(self, name: str) -> None:
        """Takes a key out of the file.

        Raises:
            ConfigurationError: there is none of that name.
        """
        _, keys = _read(self.file)
        kept = [key for key in keys.values() if key.name != name]
        if len(kept) == len(keys):
            names = ", ".join(key.name for key in kept) or "none"
            raise ConfigurationError(f"{self.file} has no key named {name!r}; it has {names}")
        self._write(kept)

    def _write(self, keys: list[AccessKey]) -> None:
        write_secret(self.file, json.dumps({"keys": [asdict(key) for key in keys]}, indent=2) + "\n")
        with self._reading:
            self._stamp, self._keys = _read(self.file)


def read_keys(file: Path) -> Keys:
    """The keys of a file that a server is started with.

    Raises:
        ConfigurationError: it is not there, or is no file of keys.
    """
    if not file.is_file():
        raise ConfigurationError(
            f"aws_keys is {file}, which is no file; make one: hpo serve key NAME --aws-keys {file}"
        )
    return Keys(file)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_ino


def _read(file: Path) -> tuple[tuple[int, int], dict[str, AccessKey]]:
    stamp = _stamp(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return stamp, {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the keys {file} cannot be read: {error}; name another file") from error
    try:
        keys = [AccessKey(**row) for row in json.loads(text)["keys"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{file} is no file of keys: {type(error).__name__} {error}; `hpo serve key NAME` adds a key to one"
        ) from error
    for key in keys:
        if not all(isinstance(each, str) and each for each in (key.name, key.id, key.secret)):
            raise ConfigurationError(
                f"{file}: a key lacks its name, id or secret; `hpo serve key NAME` makes whole ones"
            )
        if key.rights not in get_args(Rights):
            raise ConfigurationError(f"{file}: key {key.name!r} has the rights {key.rights!r}; give look or act")
    return stamp, {key.id: key for key in keys}
