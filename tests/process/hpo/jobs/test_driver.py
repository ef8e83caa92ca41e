"""A driver takes a job's row and runs it, from wherever the one before it ended."""

from __future__ import annotations

import io
import signal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo.jobs.driver import drive
from tests.support.driving import CHANNELS, answer, row, run_until, tuner


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a job that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder).fit(CHANNELS, job_name="whole")
    return answer(folder, "whole")


def resumed(folder: Path, name: str, **options: Any) -> str:
    """Goes on with a job; returns what was printed."""
    said = io.StringIO()
    drive(f"sqlite:///{folder}/record.db", name, console=Console(file=said, width=300), resume=True, **options)
    return said.getvalue()


@pytest.mark.fault
def test_a_driver_that_was_killed_is_followed_by_another(expected: dict[str, Any], tmp_path: Path) -> None:
    assert run_until(tmp_path, 3, signal.SIGKILL).returncode == -signal.SIGKILL
    resumed(tmp_path, "job")
    assert answer(tmp_path, "job") == expected
    # What the killed run took counts, though no trial of it had ended.
    first, second = (end - began for began, end in row(tmp_path).summary["runs"])
    assert first < row(tmp_path).summary["wall_seconds"] <= first + second
