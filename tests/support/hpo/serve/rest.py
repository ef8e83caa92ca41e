"""Requests of the REST API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from starlette.testclient import TestClient

Get = Callable[..., Any]


@pytest.fixture
def get(client: TestClient, tokens: dict[str, str]) -> Get:
    def ask(path: str, code: int = 200) -> Any:
        answer = client.get(f"/api/{path}", headers={"Authorization": f"Bearer {tokens['look']}"})
        assert answer.status_code == code, answer.text
        return answer.json()

    return ask
