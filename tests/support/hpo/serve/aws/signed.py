"""Signed requests of SageMaker's clients to a server, and creation of its jobs in this process."""

from __future__ import annotations

import io
import json
import sys
from importlib import import_module
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from starlette.testclient import TestClient

from hpo.record import Store
from hpo.serve import Keys


class Door:
    """Signed requests to a server, whatever their bodies."""

    def __init__(self, client: TestClient, keys: Keys, store: str) -> None:
        self.client, self.store = client, store
        key = keys.add("alice", "act")
        self._signing = SigV4Auth(Credentials(key.id, key.secret), "sagemaker", "us-east-1")

    def call(self, operation: str, body: bytes) -> Any:
        headers = {"X-Amz-Target": f"SageMaker.{operation}", "Content-Type": "application/x-amz-json-1.1"}
        request = AWSRequest(method="POST", url="http://localhost/", data=body, headers=headers)
        self._signing.add_auth(request)
        return self.client.post("/", content=body, headers=dict(request.headers))

    def names(self) -> list[str]:
        with Store(self.store) as record:
            return [row.name for row in record.jobs()]


async def in_this_process(module: str, given: dict[str, Any], who: Any) -> Any:
    """Run a module that creates jobs in this process, and return its answer."""
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
        patch.setattr(sys, "stdout", out)
        import_module(module).main()
    return json.loads(out.getvalue())
