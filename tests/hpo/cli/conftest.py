"""The record that commands read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hpo.record.store import Store


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    """The default store, with nothing in it."""
    with Store() as opened:
        yield opened
