"""Access keys: a file that holds them with their secrets, by which requests are signed, and with names and rights."""

from __future__ import annotations

import secrets
import string
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpo.serve.security import Rights, SecretFile
from trainers.errors import ConfigurationError


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
        self._file = SecretFile(file, "key", _key, asdict)

    @property
    def file(self) -> Path:
        """Where they are."""
        return self._file.path

    def find(self, id: str) -> AccessKey | None:
        """The key of an id; None where there is none."""
        return next((key for key in self._file.all() if key.id == id), None)

    def add(self, name: str, rights: Rights) -> AccessKey:
        """Makes a key and puts it into the file, which nobody but its owner can read.

        Raises:
            ConfigurationError: the name is wrong or taken, or the file cannot be written.
        """
        letters = string.ascii_uppercase + "234567"
        id = "WBAK" + "".join(secrets.choice(letters) for _ in range(16))
        key = AccessKey(name=name, id=id, secret=secrets.token_urlsafe(30), rights=rights, created_at=time.time())
        self._file.add(key)
        return key

    def remove(self, name: str) -> None:
        """Takes a key out of the file.

        Raises:
            ConfigurationError: there is none of that name.
        """
        self._file.remove(name)


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


def _key(row: Any) -> AccessKey:
    key = AccessKey(**row)
    if not all(isinstance(each, str) and each for each in (key.name, key.id, key.secret)):
        raise ConfigurationError("a key lacks its name, id or secret; `hpo serve key NAME` makes whole ones")
    return key
