"""The record and the job file that commands read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support.small_job import write_job


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    """The default store, with nothing in it."""
    with Store() as opened:
        yield opened


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file that two tiny tables belong to."""
    return write_job(tmp_path)
