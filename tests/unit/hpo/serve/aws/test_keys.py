"""Access keys, their file and their command; and calls of one key that come too fast."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from starlette.requests import Request
from starlette.responses import Response

from hpo.record import Store
from hpo.serve import Keys
from hpo.serve.aws import AwsDoor, read_keys
from hpo.serve.aws.door import CREATIONS_OF_ONE_KEY
from hpo.serve.aws.keys import AccessKey
from hpo.serve.errors import RefusedError
from hpo.serve.security import Rates
from tests.support.listed import hpo
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError


def test_a_key_is_made_shown_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    with refuses(ConfigurationError, field="aws_keys", value=str(file), remedy="hpo serve key NAME"):
        read_keys(file)
    shown = dict(
        line.removeprefix("export ").split("=")
        for line in hpo("serve", "key", "alice", "--aws-keys", str(file), columns=300).splitlines()
        if line.startswith("export ")
    )
    assert shown["AWS_DEFAULT_REGION"]
    for service in ("SAGEMAKER", "CLOUDWATCH", "CLOUDWATCH_LOGS"):
        assert shown[f"AWS_ENDPOINT_URL_{service}"] == "http://127.0.0.1:8900"
    made = read_keys(file).find(shown["AWS_ACCESS_KEY_ID"])
    assert made is not None
    assert (made.name, made.rights, made.secret) == ("alice", "act", shown["AWS_SECRET_ACCESS_KEY"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    mentions(hpo("serve", "key", "alice", "--aws-keys", str(file), code=2), str(file), "key", "alice")
    mentions(hpo("serve", "key", "alice", "--remove", "--aws-keys", str(file), columns=300), "alice", str(file))
    mentions(hpo("serve", "key", "alice", "--remove", "--aws-keys", str(file), code=2), str(file), "key", "alice")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[]", ("hpo serve key NAME",)),
        ('{"keys": [{"name": "a"}]}', ("hpo serve key NAME",)),
        ('{"keys": [{"name": "a", "id": "", "secret": "c"}]}', ("name", "id", "secret", "hpo serve key NAME")),
        ('{"keys": [{"name": "a", "id": "b", "secret": "c", "rights": "all"}]}', ("rights", "all", "look", "act")),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)
    with refuses(ConfigurationError, field=str(file), remedy=names):
        read_keys(file)


def test_calls_that_come_too_fast_are_throttled_and_a_broken_file_lets_nobody_in(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    key = keys.add("alice", "look")

    async def run(call: Callable[[], Any]) -> Any:
        return call()

    def unused() -> Store:
        raise AssertionError("the record is not asked")

    door = AwsDoor(unused, None, keys, None, run, run, lambda: datetime.now(UTC), Rates(0.001, 1))

    def code() -> str:
        return str(json.loads(asyncio.run(called(door, key, "ListModels")).body)["__type"])

    assert [code(), code()] == ["UnknownOperationException", "ThrottlingException"]
    keys.file.write_text("cut short")
    assert code() == "ServiceUnavailable"


async def called(door: AwsDoor, key: AccessKey, operation: str) -> Response:
    """A door's response to a signed request without a body."""
    headers = {"X-Amz-Target": f"SageMaker.{operation}", "Host": "here"}
    signed = AWSRequest(method="POST", url="http://here/", data=b"{}", headers=headers)
    SigV4Auth(Credentials(key.id, key.secret), "sagemaker", "eu-central-1").add_auth(signed)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in signed.headers.items()],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    return await door(Request(scope, receive))


def test_one_key_creates_so_many_jobs_at_once_and_others_go_on(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    busy, other = keys.add("busy", "act"), keys.add("other", "act")
    most = CREATIONS_OF_ONE_KEY

    async def look() -> None:
        may_go, full = asyncio.Event(), asyncio.Event()

        async def run(call: Callable[[], Any]) -> Any:
            if full.is_set():
                raise RefusedError(503, "Busy", "no thread is free")
            await may_go.wait()
            return call()

        def unused() -> Store:
            raise AssertionError("the requests are not valid")

        door = AwsDoor(unused, None, keys, None, run, run)

        async def create(key: AccessKey) -> str:
            response = await called(door, key, "CreateHyperParameterTuningJob")
            return str(json.loads(response.body)["message"])

        under_way = [asyncio.create_task(create(each)) for each in [busy] * most + [other]]
        await asyncio.sleep(0)
        mentions(await create(busy), "'busy'", most, "wait")
        may_go.set()
        assert all("must not be null" in told for told in await asyncio.gather(*under_way))
        full.set()
        assert {await create(busy) for _ in range(most + 1)} == {"no thread is free"}
        full.clear()
        assert "must not be null" in await create(busy)

    asyncio.run(look())
