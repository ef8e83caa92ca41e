"""The same promises on an object store: a real server, through pyarrow."""

from __future__ import annotations

import pytest

from tests.support.refusals import refuses
from trainers import ConfigurationError, DataError, storage
from trainers.errors import CheckpointError


def test_no_bucket_is_an_error_that_says_so_and_hides_the_keys(s3: str) -> None:
    nowhere = s3.replace("warmband", "never-made").replace("&allow_bucket_creation=true", "")
    with refuses(ConfigurationError, field="storage_path", value="never-made", remedy="bucket") as no:
        storage.check_writable(nowhere)
    assert "secret" not in str(no.value)
    with refuses(DataError, field="000001", value="never-made", remedy="bucket"):
        storage.write(storage.join(nowhere, "000001"), b"model")
    with refuses(CheckpointError, field="000001", remedy="folder"):
        storage.read(storage.join(nowhere, "000001"))


def test_nobody_at_the_endpoint_is_an_error_that_says_so_and_hides_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 6 s: for so long pyarrow asks again."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-secret")
    with refuses(DataError, field="s3://bucket/a", remedy=("endpoint", "network")) as no:
        storage.read("s3://bucket/a?region=us-east-1&endpoint_override=http%3A%2F%2F127.0.0.1%3A1")
    assert "hidden-secret" not in str(no.value)
