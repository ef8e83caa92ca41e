"""Tokens, sessions and rates, and what the guard lets through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from hpo.serve import ServeSettings, make_app
from hpo.serve.security import guard


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_large_body_is_refused_with_its_length_or_without(client: TestClient, tokens: dict[str, str]) -> None:
    for content in (b"x" * 10_001, iter([b"x" * 6000, b"x" * 6000])):
        refused = client.post("/api/jobs/bank/resume", content=content, headers=bearer(tokens["act"]))
        assert (refused.status_code, refused.json()["error"]["type"]) == (413, "TooLarge")


@pytest.fixture
def bounded(settings: ServeSettings, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A server that takes 100 bytes of bodies a second of each token, and 10,000 at once."""
    monkeypatch.setattr(guard, "BODY_BYTES_A_SECOND", 100)
    monkeypatch.setattr(guard, "BODY_BYTES_AT_ONCE", 10_000)
    with TestClient(make_app(settings), base_url="http://localhost") as client:
        yield client


def test_the_bodies_of_one_token_have_a_rate(bounded: TestClient, tokens: dict[str, str]) -> None:
    def send(token: str) -> int:
        body = b'{"hyperparameters": 1, "x": "%s"}' % (b"x" * 4000)
        answer = bounded.post("/api/jobs/bank/trials", content=body, headers=bearer(token))
        if answer.status_code == 429:
            assert int(answer.headers["retry-after"]) > 10
            assert answer.json()["error"]["type"] == "TooManyRequests"
        return answer.status_code

    assert [send(tokens["act"]) for _ in range(4)] == [400, 400, 429, 429]
    assert send(tokens["look"]) == 403
    assert bounded.get("/api/jobs", headers=bearer(tokens["act"])).status_code == 200
