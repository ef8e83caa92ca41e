"""Ctrl-C, typed on a job's own terminal: the job stops, says so, and leaves no process.

Three of the cases that `python -m tests.support.ctrl_c_rounds` plays, each with a Ray of its own; what is decided
without Ray is in `test_interrupt.py`, `tests/unit/trainers/process/test_uninterrupted.py` and `test_cluster_end.py`.
"""

from __future__ import annotations

import pytest

from tests.support.hpo.jobs.ctrl_c import CHOSEN, check


@pytest.mark.fault
@pytest.mark.parametrize("name", [name for name in CHOSEN if name != "ray.init"])
def test_ctrl_c_on_gangs_stops_the_job_and_leaves_nothing(name: str) -> None:
    check(name)
