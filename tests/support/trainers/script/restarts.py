"""A program that goes on after a pause or begins again, and a trial of it that is paused twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.script_programs import assignment, values
from trainers.gangs import Segment
from trainers.script.program import ScriptProgram

TRAIN = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--eta", type=float, default=0.5)
parser.add_argument("--seconds", type=float, default=0.6)
args = parser.parse_args()
state = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "deep", "state.json")
os.makedirs(os.path.dirname(state), exist_ok=True)
os.listdir(os.path.dirname(state))
epoch, weight = {start}
{before}
while epoch < args.epochs:
    weight, epoch = weight + args.eta * (1 - weight), epoch + 1
    {report}
    time.sleep(0.3)
    with open(state + ".new", "w") as file:
        json.dump([epoch, weight], file)
    os.replace(state + ".new", state)
    time.sleep(args.seconds)
"""
ANEW, ON = "0, 0.0", "json.load(open(state)) if os.path.exists(state) else (0, 0.0)"
LOOKS = "(os.path.exists(state) and json.load(open(state))) and (0, 0.0) or (0, 0.0)"
"""Reads its checkpoint, and begins again all the same."""
PRINTS = "print(f'acc={weight:.6f}', flush=True)"
REPORTS = "import warmband; warmband.report({'validation:accuracy': weight, 'loss': 1 - weight, 'at': time.time()})"
EXPECTED = [(step, pytest.approx(1 - 0.5**step, abs=1e-6)) for step in range(1, 6)]


def train(start: str, report: str = PRINTS, before: str = "") -> str:
    return TRAIN.format(start=start, report=report, before=before)


def three(program: ScriptProgram, folder: Path, **given: Any) -> list[Segment]:
    """A trial of five units that is paused after the first and after the third."""
    segments: list[Segment] = []
    for stop in (1, 3, 5):
        before = segments[-1] if segments else None
        segments.append(program.train(assignment(folder, stop, before, epochs=5, **given), print))
    return segments


def check_values(program: ScriptProgram, folder: Path, goes_on: bool) -> None:
    """Train with two pauses; check each unit's value, and that what was trained again is said."""
    segments = three(program, folder)
    assert values(*segments) == EXPECTED
    again = [each.details.get("units_trained_again", 0) for each in segments]
    assert again == [0, 0, 0] if goes_on else again[2] >= 3
