"""Requests about endpoints, and an endpoint's file."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from hpo.serve.deployments.files import Deployment

if TYPE_CHECKING:
    from starlette.testclient import TestClient

Ask = Callable[..., Any]


@pytest.fixture
def ask(client: TestClient, tokens: dict[str, str]) -> Ask:
    def call(method: str, path: str, code: int, body: Any = None, rights: str = "act") -> Any:
        headers = {"Authorization": f"Bearer {tokens[rights]}"}
        answer = client.request(method, f"/api/{path}", json=body, headers=headers)
        assert answer.status_code == code, answer.text
        return answer.json()

    return call


def deployment(**changes: Any) -> Deployment:
    return Deployment(
        **{"name": "live", "job": "bank", "trial": "bank-001", "by": "actor", "at": time.time(), **changes}
    )
