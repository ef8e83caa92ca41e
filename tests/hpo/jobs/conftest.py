"""Working directories of jobs: one to submit from, and one with a package of a user's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.own_jobs import own_package
from tests.support.submitted import project


@pytest.fixture
def project_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a job file and its data."""
    place = tmp_path / "project"
    place.mkdir()
    project(place, monkeypatch)
    return place


@pytest.fixture
def package_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, which Python does not look in, with a package whose import leaves a file behind."""
    with own_package(tmp_path, monkeypatch):
        yield tmp_path
