"""Archives: each trial that has ended leaves its model, before its checkpoint goes and whatever comes between."""

from __future__ import annotations

import io
import tarfile

import pytest

from hpo.jobs.files import checkpoints as module
from trainers import storage


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_SECONDS", 0.01)


def test_a_name_in_gz_holds_what_was_written(s3: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz"):
        pass
    uri = storage.join(s3, "packed.tar.gz")
    storage.check_writable(s3)
    storage.write(uri, packed.getvalue())
    assert storage.size(uri) == len(packed.getvalue())
    assert storage.read(uri) == packed.getvalue()
