"""The folder of a job on a disk and on an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainers import storage


@pytest.fixture(params=["a disk", "an object store"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the folder of a job."""
    if request.param == "a disk":
        (tmp_path / "job").mkdir()
        return str(tmp_path / "job")
    s3: str = request.getfixturevalue("s3")
    storage.check_writable(s3)
    return storage.join(s3, tmp_path.name)


def beside_place(refused: pytest.ExceptionInfo[BaseException], uri: str) -> str:
    """Return an error's text without the file's URI, which contains the trial's name."""
    return str(refused.value).replace(uri, "")
