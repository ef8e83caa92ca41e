"""A gang whose scripts stay alive from rung to rung."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.process_gang import ProcessGang, process_gang
from tests.support.script_programs import ACCURACY, PROGRAMS, assignment
from trainers import ScalingConfig, ScriptTrainer
from trainers.gangs import Assignment
from trainers.gangs.program import Program


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGang]:
    """Two workers without Ray."""
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def made(folder: Path, launcher: str, processes: int) -> Program:
    """The program of two workers."""
    trainer = ScriptTrainer(
        "rounds.py",
        source_dir=PROGRAMS,
        launcher=launcher,
        scaling=ScalingConfig(num_workers=2),
        metric_definitions=[ACCURACY],
        processes_per_worker=processes,
        environment={"STARTS": str(folder / "starts")},
        report_timeout_s=60,
        grace_period_s=5,
    )
    return trainer.program({})


def rungs(folder: Path, *stops: int) -> list[Assignment]:
    """A trial that goes on at once from each of these units but the last."""
    found: list[Assignment] = []
    for stop in stops:
        given = replace(assignment(folder, stop, epochs=stops[-1]), goes_on=stop < stops[-1])
        if found:
            given = replace(given, start=found[-1].stop, checkpoint=found[-1].save_to)
        found.append(given)
    return found


def started(folder: Path) -> list[int]:
    """Process ids of all starts."""
    return [int(line) for line in (folder / "starts").read_text().split()]


def alive(folder: Path) -> list[int]:
    """Those that are not over."""
    return [
        pid
        for pid in started(folder)
        if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ]
