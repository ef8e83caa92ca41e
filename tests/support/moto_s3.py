"""An S3-compatible server of the tests' own, moto's, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from trainers import object_stores


@contextmanager
def moto_s3() -> Iterator[str]:
    """The address of a server that runs as long as the context lasts, as `AWS_ENDPOINT_URL_S3` takes it."""
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        object_stores._bucket.cache_clear()  # It has connections to the servers of earlier tests, by the same URIs.
        host, port = running.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        running.stop()


def s3_client(address: str) -> Any:
    """A client of the server at an address."""
    secret = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    return boto3.client("s3", endpoint_url=address, **secret)
