"""Minimal assignments of a gang, and minimal segments for its answers."""

from __future__ import annotations

from typing import Any

from trainers.gangs.messages import Assignment, Report, Segment


def assignment(**changes: Any) -> Assignment:
    """A trial's first unit, unless told otherwise."""
    first = {"trial_id": "t", "hyperparameters": {}, "seed": 3, "start": 0, "stop": 1, "checkpoint": None}
    return Assignment(**{**first, "save_to": "/nowhere", **changes})


def segment(*reports: Report, **changes: Any) -> Segment:
    """Return a segment with these reports, trained in 0 s unless `changes` say otherwise."""
    times = dict.fromkeys(("training_seconds", "checkpointing_seconds", "first_step_at"), 0.0)
    return Segment(**{"reports": reports, "checkpoint": "", **times, **changes})
