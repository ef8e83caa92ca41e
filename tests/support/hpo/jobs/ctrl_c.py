"""Cases in which a user types Ctrl-C on a job's terminal."""

from __future__ import annotations

from tests.support.ctrl_c_rounds import cases, play

CHOSEN = {"ray.init": False, "first gang, on the answer": True, "training, on the answer": False}
"""By name: True if `hpo tune` runs the job, False if a script does."""


def check(name: str) -> None:
    """Play a case and check its outcome: its exit code and its record are checked in `ctrl_c_rounds`."""
    (case,) = [case for case in cases() if case.name == name]
    outcome = play(case, command=CHOSEN[name])
    assert not outcome.wrong, outcome.seen[-4000:]
    assert outcome.said
    assert not outcome.left
