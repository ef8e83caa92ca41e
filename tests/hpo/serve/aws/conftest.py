"""A server with a record, and botocore's own clients of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import uvicorn
from botocore.config import Config

from hpo.record import Store
from hpo.serve import Keys, ServeSettings, make_app
from hpo.serve.aws import AccessKey
from tests.support.listed import job
from tests.support.rows import sqlite_url, until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(sqlite_url(tmp_path)) as opened:
        job(opened, "bank", values=[0.5, 0.75, None])
        yield opened


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "aws-keys.json")


@pytest.fixture
def key(keys: Keys) -> AccessKey:
    return keys.add("alice", "act")


@pytest.fixture
def endpoint(tmp_path: Path, store: Store, keys: Keys, key: AccessKey) -> Iterator[str]:
    """The address of a server that listens."""
    settings = ServeSettings(store=sqlite_url(tmp_path), folder=tmp_path / "serve", aws_keys=keys.file)
    server = uvicorn.Server(uvicorn.Config(make_app(settings), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive(), "the server has not ended within 30 s"


Client = Callable[..., Any]


@pytest.fixture
def client(endpoint: str, key: AccessKey) -> Client:
    """A client of a service, by default with the key that may act."""

    def made(service: str = "sagemaker", signer: AccessKey = key, **config: Any) -> Any:
        return boto3.client(
            service,
            region_name="eu-central-1",
            endpoint_url=endpoint,
            aws_access_key_id=signer.id,
            aws_secret_access_key=signer.secret,
            config=Config(**{"retries": {"total_max_attempts": 1}, "read_timeout": 300, **config}),
        )

    return made
