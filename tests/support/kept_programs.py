"""Programs that stay loaded: one that reports a value a unit, and the trials that take turns in it."""

from __future__ import annotations

from pathlib import Path

from tests.support.script_programs import assignment
from trainers.gangs import Segment
from trainers.script.program import ScriptProgram

LOOP = """
import json, os, time, warmband
args = warmband.hyperparameters()
{before}
for epoch in range({first}, args["epochs"] + 1):
    {unit}
    if warmband.report({{"validation:accuracy": {value}, "process": os.getpid()}}):
        break
{after}
"""


def looping(value: str = "epoch / 10", unit: str = "pass", before: str = "", after: str = "", first: str = "1") -> str:
    """A program that reports a value a unit."""
    return LOOP.format(value=value, unit=unit, before=before, after=after, first=first)


def trained(program: ScriptProgram, folder: Path, *stops: int, **hyperparameters: object) -> list[Segment]:
    """Train trials of these units one after the other; return their segments."""
    return [program.train(assignment(folder, stop, epochs=5, **hyperparameters), print) for stop in stops]


def processes(segment: Segment) -> set[float]:
    """The processes that reported."""
    return {report.metrics["process"] for report in segment.reports}
