"""A `ray.shutdown` that ends nothing."""

from __future__ import annotations

import pytest
import ray


@pytest.fixture(autouse=True)
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record calls of `ray.shutdown` instead of ending the session's Ray."""
    ended: list[str] = []
    monkeypatch.setattr(ray, "shutdown", lambda: ended.append("ray"))
    return ended
