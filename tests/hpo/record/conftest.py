"""A store with one job, on each database or in a SQLite file, and writers that are not heard of in between."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hpo.record import writer as store_writer
from hpo.record.store import Store
from tests.support.rows import job, sqlite_url


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """A store with the job "bank", of which nothing is known."""
    with Store(database) as opened:
        opened.create_job(job())
        yield opened


@pytest.fixture
def local(tmp_path) -> Iterator[Store]:
    """A store in the file `store.db`, for what is SQLite's alone."""
    with Store(sqlite_url(tmp_path)) as opened:
        opened.create_job(job())
        yield opened


@pytest.fixture
def quiet(monkeypatch):
    """Writers whose heartbeats do not come in between."""
    monkeypatch.setattr(store_writer, "BEAT_EVERY", 3600.0)
