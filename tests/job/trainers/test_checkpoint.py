"""Checkpoints of one file and of several: whole once their manifest is known, refused where a byte of them changed."""

from __future__ import annotations

import hashlib

from tests.support.refusals import mentions, refuses
from tests.support.trainers.checkpoint import (
    beside_place,
    job,  # noqa: F401  # A fixture.
)
from trainers import checkpoint, storage
from trainers.checkpoint import UNKNOWN, File
from trainers.errors import CheckpointError


def test_one_file_is_known_by_its_size_and_digest(job: str) -> None:
    uri = storage.join(job, "job-003", "000009.ubj")
    manifest = checkpoint.save(uri, b"a model")
    assert manifest.files == (File(name="000009.ubj", size=7, digest=hashlib.sha256(b"a model").hexdigest()),)
    assert storage.read(uri) == checkpoint.load(uri, manifest) == checkpoint.load(uri) == b"a model"
    assert checkpoint.is_there(uri, manifest)
    for data, sizes in ((b"a mode", (6, 7)), (b"a Model", ())):
        storage.write(uri, data)
        for read in (checkpoint.load, checkpoint.check):
            with refuses(CheckpointError, field=uri) as refused:
                read(uri, manifest)
            mentions(beside_place(refused, uri), "job-003", *sizes)
        assert checkpoint.is_there(uri, manifest) == (len(data) == 7), "sizes are all that is looked at"
    for _ in range(2):
        checkpoint.remove(uri)
        assert not checkpoint.is_there(uri, manifest)
        assert not checkpoint.is_there(uri, UNKNOWN)
        with refuses(CheckpointError, field=uri):
            checkpoint.load(uri, manifest)
