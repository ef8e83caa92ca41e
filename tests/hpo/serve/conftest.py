"""A record with a job, and the server's app over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hpo.record import Store
from hpo.serve import ServeSettings, Tokens, make_app
from tests.support.listed import job
from tests.support.rows import sqlite_url


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(sqlite_url(tmp_path)) as opened:
        job(opened, "bank", values=[0.5, 0.75, None])
        yield opened


@pytest.fixture
def settings(tmp_path: Path, store: Store) -> ServeSettings:
    return ServeSettings(store=sqlite_url(tmp_path), folder=tmp_path / "serve", most_bytes=10_000)


@pytest.fixture
def tokens(settings: ServeSettings) -> dict[str, str]:
    file = Tokens(settings.tokens_file)
    return {"look": file.add("looker", "look"), "act": file.add("actor", "act")}


@pytest.fixture
def client(settings: ServeSettings, tokens: dict[str, str]) -> Iterator[TestClient]:
    with TestClient(make_app(settings), base_url="http://localhost") as opened:
        yield opened
