"""A store with one job, on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hpo.record.store import Store
from tests.support.rows import job


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """A store with the job "bank", of which nothing is known."""
    with Store(database) as opened:
        opened.create_job(job())
        yield opened
