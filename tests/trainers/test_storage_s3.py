"""The same promises on an object store: a real server, through pyarrow."""

from __future__ import annotations

import pytest

from tests.support.refusals import refuses
from tests.support.stored_job import stored_job
from trainers import ConfigurationError, DataError, storage
from trainers.errors import CheckpointError


def test_a_folder_s_life(s3: str) -> None:
    storage.check_writable(s3)
    job = stored_job(s3)
    assert storage.read(storage.join(job, "job-000", "000003")) == b"model\xff" * 1000
    assert storage.names(job) == ["job-000", "job-001"]
    for _ in range(2):
        storage.delete(storage.join(job, "job-000", "000001"))
        storage.delete_folder(storage.join(job, "job-001"))
    assert storage.names(job) == ["job-000"]
    assert storage.names(storage.join(job, "job-000")) == ["000003"]
    storage.write(storage.join(job, "job-000", "000003"), b"")
    assert storage.read(storage.join(job, "job-000", "000003")) == b""
    storage.delete_folder(job)
    assert storage.names(job) == []


def test_large_files_come_back(s3: str) -> None:
    data = bytes(range(256)) * 50_000
    storage.check_writable(s3)
    storage.write(storage.join(s3, "large"), data)
    assert storage.read(storage.join(s3, "large")) == data
    storage.delete(storage.join(s3, "large"))


def test_the_check_leaves_nothing(s3: str) -> None:
    bucket = s3.replace("warmband/jobs", "fresh")
    storage.check_writable(storage.join(bucket, "a", "b"))
    assert storage.names(bucket) == []
    storage.write(storage.join(bucket, "a", "b", "000001"), b"model")
    storage.check_writable(storage.join(bucket, "a", "b"))
    assert storage.names(storage.join(bucket, "a", "b")) == ["000001"]


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
