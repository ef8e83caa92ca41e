"""Settings and accounts of simulated parameter servers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.server_workers import Trained
from trainers.parameter_server.settings import Settings

ASYNC = Settings.of({"mode": "async", "num_servers": 2}, 4)


def account(results: list[Trained]) -> dict[str, Any]:
    found: dict[str, Any] = results[0].details["parameter_server"]
    return found


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Any:
    before = {*threading.enumerate()}
    yield
    # Threads of libraries and of earlier tests may come and go meanwhile.
    left = [thread.name for thread in {*threading.enumerate()} - before]
    assert not [name for name in left if name.startswith(("simulated worker", "report-deadline"))]
