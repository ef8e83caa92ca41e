"""Programs of scripts' gangs in this process: assignments for them, and what they report."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainers.checkpoint import UNKNOWN
from trainers.gangs import Assignment, Segment
from trainers.script.guard import TOKEN
from trainers.script.parts.kept_process import HOST

PROGRAMS = Path(__file__).parent / "script" / "programs"
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


def running(entry_point: str) -> list[str]:
    """The parts of a program that Ray's workers run; programs of other tests, and those without Ray, are theirs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            if f"{TOKEN}=".encode() in environment and b"RAY_RAYLET_PID=" in environment:
                found.append((process / "cmdline").read_bytes().decode())
        except OSError:
            continue
    return [command for command in found if entry_point in command]


def started_with(variable: str, entry_point: str) -> list[str]:
    """The parts of a program that were started with a variable."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().decode())
    return [command for command in found if entry_point in command]


def hosts(environment: Mapping[str, str]) -> set[int]:
    """The processes of programs that are kept loaded with these variables."""
    own = {f"{name}={value}".encode() for name, value in environment.items()}
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if own <= set(variables) and HOST.encode() in (process / "cmdline").read_bytes():
                found.add(int(process.name))
    return found
