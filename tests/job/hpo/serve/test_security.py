"""Tokens, sessions and rates, and what the guard lets through."""

from __future__ import annotations

from starlette.testclient import TestClient


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_large_body_is_refused_with_its_length_or_without(client: TestClient, tokens: dict[str, str]) -> None:
    for content in (b"x" * 10_001, iter([b"x" * 6000, b"x" * 6000])):
        refused = client.post("/api/jobs/bank/resume", content=content, headers=bearer(tokens["act"]))
        assert (refused.status_code, refused.json()["error"]["type"]) == (413, "TooLarge")
