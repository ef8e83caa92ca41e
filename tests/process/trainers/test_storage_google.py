"""The same promises on Google's storage, by its own client: a real server, through pyarrow."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.google_storage import GoogleStorage
from tests.support.refusals import refuses
from tests.support.stored_job import stored_job
from trainers import ConfigurationError, checkpoint, object_stores, storage
from trainers.errors import CheckpointError, StorageError
from trainers.patient_storage import PatientStorage


@pytest.fixture(autouse=True)
def sound(google: GoogleStorage) -> Iterator[None]:
    yield
    google.answer()


def test_a_folder_s_life(google: GoogleStorage) -> None:
    """Pyarrow lists no folder that keys alone make: names of trials would be missing when a job is deleted."""
    jobs = google.uri("warmband/jobs")
    storage.check_writable(jobs)
    assert storage.names(jobs) == []
    job = stored_job(jobs)
    assert storage.read(storage.join(job, "job-000", "000003")) == b"model\xff" * 1000
    model = storage.join(job, "job-000", "000003")
    assert [storage.read(model, at, 10) for at in (0, 5998, 6000, 7000)] == [b"model\xffmode", b"l\xff", b"", b""]
    assert storage.size(storage.join(job, "job-000", "000003")) == 6000
    assert storage.names(job) == ["job-000", "job-001"]
    for _ in range(2):
        storage.delete(storage.join(job, "job-000", "000001"))
        checkpoint.remove_trial(storage.join(job, "job-001"))
    assert storage.names(job) == ["job-000"]
    assert storage.names(storage.join(job, "job-000")) == ["000003"]
    assert not storage.delete_if_empty(job)
    checkpoint.remove_trial(storage.join(job, "job-000"))
    assert storage.delete_if_empty(job)
    assert storage.names(job) == []
    assert not storage.is_there(job)


def test_a_checkpoint_of_parts_that_are_large(google: GoogleStorage) -> None:
    """Its client sends what is larger than 8 MiB piece by piece."""
    place = google.uri("warmband/parts/job-000/000001")
    data = bytes(range(256)) * 50_000
    files = [PatientStorage().write_part(place, f"part-{number}", data[number:]) for number in range(2)]
    manifest = PatientStorage().seal(place, files)
    assert checkpoint.load(place, manifest, "part-1") == data[1:]
    assert checkpoint.load_span(place, "part-0", 300, 5) == data[300:305]
    assert len(storage.names(place)) >= 2


def test_a_server_that_is_away_for_a_moment_is_asked_again(google: GoogleStorage) -> None:
    google.answer(503, times=1)
    file = google.uri("warmband/away/job-000/000001")
    storage.write(file, b"model")
    assert google.left == 0
    google.answer(503, times=1)
    assert storage.read(file) == b"model"
    assert google.left == 0


def test_what_is_not_there_and_what_is_refused_say_so(google: GoogleStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_stores, "RETRY_SECONDS", 1)
    nowhere = google.uri("never-made/jobs")
    with refuses(ConfigurationError, field="storage_path", value="never-made", remedy="bucket"):
        storage.check_writable(nowhere)
    with refuses(CheckpointError, field="000001", remedy="folder"):
        storage.read(google.uri("warmband/none/000001"))
    google.answer(403)
    with refuses(StorageError, field="000001", remedy=("read", "write", "access")):
        storage.write(google.uri("warmband/none/000001"), b"model")
    google.answer(503)
    began = time.monotonic()
    with refuses(StorageError, field="000002"):
        storage.read(google.uri("warmband/none/000002") + "&retry_limit_seconds=1")
    assert time.monotonic() - began < 20, "by itself its client would go on for 15 minutes"
