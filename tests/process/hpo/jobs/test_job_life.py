"""A job's whole life as a state machine (tests/support/job_lives.py): the same few lives every time."""

from __future__ import annotations

import pytest

from tests.support.job_lives import JobLife, live


@pytest.mark.parametrize("plan", JobLife.plans)
def test_whatever_befalls_a_job_it_comes_to_its_own_end(plan: int) -> None:
    live(plan, 10)
