"""The same promises on an object store: a real server, through pyarrow."""

from __future__ import annotations

from tests.support.stored_job import stored_job
from trainers import storage
from trainers.checkpoint import remove_trial


def test_a_folder_s_life(s3: str) -> None:
    storage.check_writable(s3)
    job = stored_job(s3)
    assert storage.read(storage.join(job, "job-000", "000003")) == b"model\xff" * 1000
    assert storage.names(job) == ["job-000", "job-001"]
    for _ in range(2):
        storage.delete(storage.join(job, "job-000", "000001"))
        remove_trial(storage.join(job, "job-001"))
    assert storage.names(job) == ["job-000"]
    assert storage.names(storage.join(job, "job-000")) == ["000003"]
    storage.write(storage.join(job, "job-000", "000003"), b"")
    assert storage.read(storage.join(job, "job-000", "000003")) == b""
    assert not storage.delete_if_empty(job)
    remove_trial(storage.join(job, "job-000"))
    assert storage.delete_if_empty(job)
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
