"""A job's uninterrupted answer, and its resumption by a driver."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo.jobs.driver import drive
from tests.support.driving import CHANNELS, answer, tuner


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the answer of an uninterrupted job."""
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder).fit(CHANNELS, job_name="whole")
    return answer(folder, "whole")


def resumed(folder: Path, name: str, **options: Any) -> str:
    """Resume a job; return the printed text."""
    said = io.StringIO()
    drive(f"sqlite:///{folder}/record.db", name, console=Console(file=said, width=300), resume=True, **options)
    return said.getvalue()
