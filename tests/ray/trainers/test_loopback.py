"""A cluster of a job's own: it listens on 127.0.0.1 alone, asks for its token, and ends with the job."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from tests.support.refusals import mentions
from tests.support.trainers.loopback import job, short_home  # noqa: F401  # Fixtures.


def test_a_cluster_of_its_own_says_so_and_ends_with_the_job(job: dict[str, Any]) -> None:
    """An error in the job changes nothing."""
    assert not job["ray"]
    (line,) = job["said"]
    mentions(line, (os.cpu_count() or 1) + 3, os.cpu_count(), "cores")


def test_its_workers_start_when_they_are_needed(job: dict[str, Any]) -> None:
    """Of itself, Ray has started some before `ray.init` returns, and runs the first task in one of them."""
    assert not job["ahead"]


def test_its_token_is_its_users_alone(job: dict[str, Any], short_home: Path) -> None:
    token = short_home / ".ray" / "auth_token"
    assert len(token.read_text()) == 64
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
