"""Checkpoints of one file and of several: whole once their manifest is known, refused where a byte of them changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.refusals import mentions, refuses
from trainers import checkpoint, storage
from trainers.checkpoint import UNKNOWN, File
from trainers.errors import CheckpointError


@pytest.fixture(params=["a disk", "an object store"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The folder of a job."""
    if request.param == "a disk":
        (tmp_path / "job").mkdir()
        return str(tmp_path / "job")
    s3: str = request.getfixturevalue("s3")
    storage.check_writable(s3)
    return storage.join(s3, tmp_path.name)


def beside_place(refused: pytest.ExceptionInfo[BaseException], uri: str) -> str:
    """What an error says beside the place of the file, which names the trial too."""
    return str(refused.value).replace(uri, "")


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
