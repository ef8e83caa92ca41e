"""Persons who act on jobs: for whom this process does so, and through which door they came."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

ACTS_AS = "WARMBAND_ACTS_AS"
"""Environment variable: the actor whose process started this one, as `Actor.to_text` writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person who acts on jobs.

    Args:
        by: a user of the machine, or the name of a server's token; empty is the user of this process.
        door: how: "Python", "command line", "REST" and so on.
        clone_of: the job that the job is a copy of which is created here; empty where it is none.
    """

    by: str = ""
    door: str = "Python"
    clone_of: str = ""

    def to_text(self) -> str:
        """For `ACTS_AS`."""
        return json.dumps({"by": self.by or user(), "door": self.door})


_ACTOR: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(by: str | None = None, door: str | None = None, clone_of: str | None = None) -> Iterator[Actor]:
    """Acts in the block, and in what it awaits, are this person's; what is None stays as it was outside.

    Args:
        by: see `Actor`.
        door: see `Actor`.
        clone_of: see `Actor`.
    """
    given = {"by": by, "door": door, "clone_of": clone_of}
    made = replace(actor(), **{name: value for name, value in given.items() if value is not None})
    token = _ACTOR.set(made)
    try:
        yield made
    finally:
        _ACTOR.reset(token)


def actor() -> Actor:
    """Who acts here: the one of the block that this is in, else the one whose process started this, else a user."""
    return _ACTOR.get() or _inherited() or Actor()


def user() -> str:
    """The user that this process runs as."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # Containers run users that no file names.
        return str(os.getuid())


def _inherited() -> Actor | None:
    try:
        given = json.loads(os.environ.get(ACTS_AS, "null"))
        return Actor(**given) if isinstance(given, dict) else None
    except (TypeError, ValueError):
        return None
