"""A job file for tests to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.job_files import JOB


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small job file, to change."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    return file
