"""Ctrl-C, typed on a job's own terminal: the job stops, says so, and leaves no process.

Three of the cases that `python -m tests.support.ctrl_c_rounds` plays, each with a Ray of its own; what is decided
without Ray is in `test_interrupt.py`, `tests/unit/trainers/process/test_uninterrupted.py` and `test_cluster_end.py`.
"""

from __future__ import annotations

import pytest

from tests.support.ctrl_c_rounds import cases, play

CHOSEN = {"ray.init": False, "first gang, on the answer": True, "training, on the answer": False}
"""By name, and whether `hpo tune` runs the job, or a script."""


@pytest.mark.fault
@pytest.mark.parametrize("name", [name for name in CHOSEN if name != "ray.init"])
def test_ctrl_c_on_gangs_stops_the_job_and_leaves_nothing(name: str) -> None:
    check(name)


def check(name: str) -> None:
    """Play a case and check its outcome: its exit code and its record are checked in `ctrl_c_rounds`."""
    (case,) = [case for case in cases() if case.name == name]
    outcome = play(case, command=CHOSEN[name])
    assert not outcome.wrong, outcome.seen[-4000:]
    assert outcome.said
    assert not outcome.left
