"""Places of simulated jobs' worlds, in memory where that can be: a folder, its record and the engine of that."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from hpo.record import database
from hpo.record.store import Store

if TYPE_CHECKING:
    from tests.support.job_life import World


SHARED = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
"""The folder of worlds: in memory, if this machine permits it."""

_ENGINES: dict[str, sa.Engine] = {}
WORLDS: dict[str, World] = {}
"""By the URL of their records: worlds come and go at few places, so that statements are compiled once."""


@cache
def _base() -> Path:
    """Return the folder of this process's worlds."""
    made = Path(tempfile.mkdtemp(prefix="warmband-life-", dir=SHARED))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def place() -> Path:
    """A place for a world at which there is none."""
    number = next(number for number in range(100) if url_at(_base() / f"{number}") not in WORLDS)
    return _base() / f"{number}"


def url_at(root: Path) -> str:
    return f"sqlite:///{root}/record.db"


def engine_at(url: str) -> sa.Engine:
    """The engine of a place, whose record can be away, and whose statements are moments of a driver's life."""
    if url not in _ENGINES:
        _ENGINES[url] = database.open_engine(url)

        def listen(*_: object) -> None:
            if world := WORLDS.get(url):
                world.statement()

        sa.event.listen(_ENGINES[url], "before_cursor_execute", listen)
    return _ENGINES[url]


@cache
def template() -> Path:
    """A record with its tables and no job, made once."""
    path = _base() / "template.db"
    with Store(f"sqlite:///{path}"):
        pass
    return path
