"""Linear algebra in one thread, as where a page is made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads would spin while they wait for each other, which counts as time of the test."""
    with threadpool_limits(1, user_api="blas"):
        yield
