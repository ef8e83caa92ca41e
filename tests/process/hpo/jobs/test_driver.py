"""A driver takes a job's row and runs it, from wherever the one before it ended."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.driving import answer, row, run_until
from tests.support.hpo.jobs.driver import (
    expected,  # noqa: F401  # A fixture.
    resumed,
)


@pytest.mark.fault
def test_a_driver_that_was_killed_is_followed_by_another(expected: dict[str, Any], tmp_path: Path) -> None:
    assert run_until(tmp_path, 3, signal.SIGKILL).returncode == -signal.SIGKILL
    resumed(tmp_path, "job")
    assert answer(tmp_path, "job") == expected
    # What the killed run took counts, though no trial of it had ended.
    first, second = (end - began for began, end in row(tmp_path).summary["runs"])
    assert first < row(tmp_path).summary["wall_seconds"] <= first + second
