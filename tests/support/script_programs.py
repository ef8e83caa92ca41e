"""Programs of scripts' gangs in this process: assignments for them, and what they report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainers.checkpoint import UNKNOWN
from trainers.gangs import Assignment, Segment

PROGRAMS = Path(__file__).parents[1] / "trainers" / "script" / "programs"
ACCURACY = {"Name": "validation:accuracy", "Regex": r"acc=([0-9.na]+)"}


def assignment(folder: Path, stop: int, before: Segment | None = None, **hyperparameters: Any) -> Assignment:
    """Of a trial, from where it was."""
    (folder / "job").mkdir(exist_ok=True)
    return Assignment(
        trial_id="trial",
        hyperparameters={"epochs": 9, **hyperparameters},
        seed=1,
        start=before.reached if before else 0,
        stop=stop,
        checkpoint=before.checkpoint if before else None,
        manifest=before.manifest if before else UNKNOWN,
        save_to=str(folder / "job" / "trial" / f"{stop:06d}"),
        objective="validation:accuracy",
    )


def values(*segments: Segment) -> list[tuple[int, float]]:
    """Steps and accuracies of all their reports."""
    return [(report.step, report.metrics["validation:accuracy"]) for each in segments for report in each.reports]
